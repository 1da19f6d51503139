//! Sensors of a device during the measurement of its cases.

use crate::clock_notes;
use crate::devices::DeviceFacts;
use crate::platforms;
use calorimeter_case::record::{Telemetry, TelemetrySample};
use calorimeter_sinks::log_line;
use calorimeter_timing::telemetry::{Sample, Sampler, Source, Throttle, now};
use calorimeter_timing::{DeviceState, Phase};
use calorimeter_zoo::Device;
use std::time::Duration;

/// Sensors of the worker's device, sampled in the background.
pub struct Sensors {
    sampler: Option<Sampler>,
    policy: String,
    /// Power at the first sample.
    idle_power_w: Option<f64>,
}

/// Sample period: short enough to detect a throttled round, long enough not to disturb it.
const SAMPLE_PERIOD: Duration = Duration::from_millis(100);
/// Maximum age of a sample at the end of a round. A new NVML sample takes about a millisecond.
const MAX_SAMPLE_AGE: Duration = Duration::from_millis(20);
/// Maximum number of samples in a record.
const MAX_SAMPLES: usize = 64;

impl Sensors {
    /// Starts sampling. If sensors are unavailable, the reason is printed to standard error, except for simulated
    /// devices.
    pub fn start(device: Device, facts: &DeviceFacts) -> Self {
        let none = Self { sampler: None, policy: String::new(), idle_power_w: None };
        let platform = platforms::for_device(device);
        if platform.is_simulated() {
            return none;
        }
        match platform.sensors(device, facts) {
            Ok(source) => {
                let policy = clock_notes::clock_policy(Some(source.policy()), facts.locked_clock);
                Self::sampling(source, SAMPLE_PERIOD)
                    .map(|sensors| Self { policy, ..sensors })
                    .map_err(|error| format!("cannot start the sensor thread: {error}"))
            }
            Err(why) => Err(why),
        }
        .unwrap_or_else(|why| {
            log_line!("no telemetry: {why}");
            none
        })
    }

    fn sampling(source: Box<dyn Source>, period: Duration) -> std::io::Result<Self> {
        let policy = source.policy();
        let sampler = Sampler::start(source, period)?;
        let idle_power_w = sampler.latest().power_w;
        Ok(Self { sampler: Some(sampler), policy, idle_power_w })
    }

    /// Clock and power settings.
    pub fn policy(&self) -> String {
        self.policy.clone()
    }

    /// Starts the observation of one measurement.
    pub fn watch(&mut self) -> SensorWatch<'_> {
        let start = now();
        let (sampler, idle_power_w) = (self.sampler.as_ref(), self.idle_power_w);
        SensorWatch {
            sampler,
            idle_power_w,
            started: start,
            throttle_checked: start,
            state_checked: start,
            round_end: start,
            round_ends: Vec::new(),
            has_energy_counter: true,
        }
    }
}

/// Sensors during one measurement.
pub struct SensorWatch<'a> {
    sampler: Option<&'a Sampler>,
    idle_power_w: Option<f64>,
    started: Duration,
    /// Start of the samples that were not yet checked for throttling.
    throttle_checked: Duration,
    /// Start of the samples that were not yet assigned to a window.
    state_checked: Duration,
    /// End of the last round, accepted or discarded.
    round_end: Duration,
    /// Ends of the accepted rounds.
    round_ends: Vec<Duration>,
    /// False once the device has no energy counter.
    has_energy_counter: bool,
}

impl SensorWatch<'_> {
    /// Accepts the round that has ended.
    pub fn end_round(&mut self) {
        self.round_ends.push(self.round_end);
    }

    /// Ends a round; returns true if the device was throttled since the previous call.
    pub fn was_throttled(&mut self) -> bool {
        self.round_end = now();
        let Some(sampler) = self.sampler else { return false };
        if self.round_end.saturating_sub(sampler.latest().at) > MAX_SAMPLE_AGE {
            sampler.sample();
        }
        let samples = sampler.samples_since(self.throttle_checked);
        // The time of the last sample, not the current time: a concurrent background sample is stamped when it is
        // stored.
        if let Some(last) = samples.last() {
            self.throttle_checked = last.at + Duration::from_nanos(1);
        }
        samples.iter().flat_map(|sample| &sample.throttle).any(|throttle| throttle.requires_repeat())
    }

    /// Returns the clock at the end of a window, and whether the device was throttled in it. A new sample leaves the
    /// device idle briefly, so that isolated measurements use the last background sample.
    pub fn state(&mut self, phase: Phase) -> Option<DeviceState> {
        let sampler = self.sampler?;
        if phase == Phase::Measure && now().saturating_sub(sampler.latest().at) > MAX_SAMPLE_AGE {
            sampler.sample();
        }
        let samples = sampler.samples_since(self.state_checked);
        let latest = samples.last().cloned().unwrap_or_else(|| sampler.latest());
        self.state_checked = latest.at + Duration::from_nanos(1);
        let held_back = samples.iter().chain([&latest]).any(|sample| !sample.throttle.is_empty());
        Some(DeviceState { clock_mhz: latest.clock_mhz, throttled: held_back })
    }

    /// Energy used so far in joules.
    pub fn joules(&mut self) -> Option<f64> {
        let joules = self.has_energy_counter.then(|| self.sampler?.joules()).flatten();
        // A device without a counter is not queried again.
        self.has_energy_counter = joules.is_some();
        joules
    }

    /// Returns the samples, each with its round number.
    pub fn finish(self) -> Option<Telemetry> {
        let sampler = self.sampler?;
        let convert = |sample: &Sample| TelemetrySample {
            round: self.round_ends.partition_point(|&ended| ended <= sample.at) as u32,
            clock_mhz: sample.clock_mhz,
            memory_clock_mhz: sample.memory_clock_mhz,
            power_w: sample.power_w,
            temperature_c: sample.temperature_c,
            throttle: sample.throttle.iter().map(ToString::to_string).collect(),
        };
        let samples = thin_out(&sampler.samples_since(self.started)).iter().map(convert).collect();
        let (source, idle_power_w) = (sampler.name().into(), self.idle_power_w);
        Some(Telemetry { source, samples, idle_power_w, ..Telemetry::default() })
    }
}

/// Selects samples evenly; each includes the throttle reasons up to the next one.
fn thin_out(samples: &[Sample]) -> Vec<Sample> {
    let step = samples.len().div_ceil(MAX_SAMPLES).max(1);
    let thinned = samples.chunks(step).map(|chunk| {
        let mut throttle: Vec<Throttle> = chunk.iter().flat_map(|sample| &sample.throttle).copied().collect();
        throttle.sort_unstable();
        throttle.dedup();
        Sample { throttle, ..chunk[0].clone() }
    });
    thinned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const NEVER: Duration = Duration::from_secs(3600);

    /// Source that reports thermal throttling in one sample.
    struct HotSource {
        taken: u32,
        hot: u32,
    }

    impl Source for HotSource {
        fn name(&self) -> &'static str {
            "scripted"
        }
        fn sample(&mut self) -> Sample {
            self.taken += 1;
            let throttle = if self.taken == self.hot { vec![Throttle::Thermal] } else { vec![] };
            let power_w = Some(70.0 * f64::from(self.taken));
            Sample { clock_mhz: Some(self.taken), power_w, throttle, ..Sample::default() }
        }
        fn joules(&mut self) -> Option<f64> {
            None
        }
        fn other_users(&mut self, _: &[u32]) -> Result<Vec<String>, String> {
            Ok(vec![])
        }
        fn facts(&self) -> Value {
            Value::Null
        }
        fn policy(&self) -> String {
            String::new()
        }
    }

    #[test]
    fn every_round_is_sampled_at_its_end() {
        let mut sensors = Sensors::sampling(Box::new(HotSource { taken: 0, hot: 3 }), NEVER).unwrap();
        let mut watch = sensors.watch();
        let mut spoilt = Vec::new();
        for _ in 0..3 {
            std::thread::sleep(MAX_SAMPLE_AGE + Duration::from_millis(1));
            spoilt.push(watch.was_throttled());
            watch.end_round();
        }
        assert_eq!(spoilt, [false, true, false]);
        let telemetry = watch.finish().unwrap();
        assert_eq!(telemetry.idle_power_w, Some(70.0), "the first sample");
        let samples: Vec<_> =
            telemetry.samples.iter().map(|sample| (sample.round, sample.clock_mhz.unwrap())).collect();
        assert_eq!(samples, [(1, 2), (2, 3), (3, 4)]);
    }

    #[test]
    fn throttled_sample_affects_one_round() {
        let mut sensors = Sensors::sampling(Box::new(HotSource { taken: 0, hot: 2 }), NEVER).unwrap();
        let mut watch = sensors.watch();
        assert!(!watch.was_throttled());
        watch.sampler.unwrap().sample();
        assert!(watch.was_throttled());
        assert!(!watch.was_throttled());
    }

    #[test]
    fn throttle_reasons_survive_thinning() {
        let sample = |n: u32| Sample {
            clock_mhz: Some(n),
            throttle: match n {
                3 => vec![Throttle::Thermal, Throttle::PowerCap],
                4 => vec![Throttle::Thermal],
                _ => vec![],
            },
            ..Sample::default()
        };
        let samples: Vec<Sample> = (0..5 * MAX_SAMPLES as u32).map(sample).collect();
        let thinned = thin_out(&samples);
        assert_eq!(thinned.len(), MAX_SAMPLES);
        assert_eq!(thinned[0], Sample { throttle: vec![Throttle::PowerCap, Throttle::Thermal], ..sample(0) });
        assert!(thinned[1..].iter().all(|sample| sample.throttle.is_empty()));
    }
}
