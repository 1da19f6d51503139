//! A device's sensors while its cases are measured.

use crate::clock_notes;
use crate::platforms;
use crate::tell::tell;
use crate::worker::protocol::DeviceFacts;
use calorimeter_case::record::{Telemetry, TelemetrySample};
use calorimeter_timing::telemetry::{Sample, Sampler, Source, Throttle, now};
use calorimeter_timing::{Phase, State};
use calorimeter_zoo::Device;
use std::time::Duration;

/// The sensors of a worker's device, looked at in the background.
pub struct Sensors {
    sampler: Option<Sampler>,
    policy: String,
    /// Power when they began to look.
    idle_power_w: Option<f64>,
}

/// Often enough to see a throttled round, seldom enough not to be seen in one.
const PERIOD: Duration = Duration::from_millis(100);
/// What was seen longer ago says little of the end of a round: looking takes NVML about a millisecond.
const FRESH: Duration = Duration::from_millis(20);
/// More samples than this say no more.
const MOST_SAMPLES: usize = 64;

impl Sensors {
    /// Begins to look. A device that should have sensors and has none says on standard error why.
    pub fn of(device: Device, facts: &DeviceFacts) -> Self {
        let platform = platforms::of(device);
        match platform.sensors(device, facts) {
            _ if platform.is_scripted() => Self { sampler: None, policy: String::new(), idle_power_w: None },
            Ok(source) => {
                let policy = clock_notes::policy(Some(source.policy()), facts.locked_clock);
                match Self::looking(source, PERIOD) {
                    Ok(sensors) => Self { policy, ..sensors },
                    Err(error) => Self::none(&format!("no thread can be had that looks at the sensors: {error}")),
                }
            }
            Err(why) => Self::none(&why),
        }
    }

    fn none(why: &str) -> Self {
        tell!("no telemetry: {why}");
        Self { sampler: None, policy: String::new(), idle_power_w: None }
    }

    fn looking(source: Box<dyn Source>, period: Duration) -> std::io::Result<Self> {
        let policy = source.policy();
        let sampler = Sampler::start(source, period)?;
        let idle_power_w = sampler.latest().power_w;
        Ok(Self { sampler: Some(sampler), policy, idle_power_w })
    }

    /// How clocks and power are set.
    pub fn policy(&self) -> String {
        self.policy.clone()
    }

    /// Watches one measurement.
    pub fn begin(&mut self) -> Watch<'_> {
        let begun = now();
        let (sampler, idle_power_w) = (self.sampler.as_ref(), self.idle_power_w);
        Watch {
            sampler,
            idle_power_w,
            begun,
            unseen: begun,
            unstated: begun,
            ended: begun,
            rounds: Vec::new(),
            energy: true,
        }
    }
}

/// The sensors during one measurement.
pub struct Watch<'a> {
    sampler: Option<&'a Sampler>,
    idle_power_w: Option<f64>,
    begun: Duration,
    /// Samples from this moment on have not been asked whether the device was held back.
    unseen: Duration,
    /// Samples from this moment on belong to no window yet.
    unstated: Duration,
    /// When the last round ended, kept or not.
    ended: Duration,
    /// When each round that was kept ended.
    rounds: Vec<Duration>,
    /// Whether the device counts its energy, as far as is known.
    energy: bool,
}

impl Watch<'_> {
    /// The round that has ended is kept.
    pub fn round(&mut self) {
        self.rounds.push(self.ended);
    }

    /// A round has ended: whether the device was held back since this was last asked.
    pub fn spoilt(&mut self) -> bool {
        self.ended = now();
        let Some(sampler) = self.sampler else { return false };
        if self.ended.saturating_sub(sampler.latest().at) > FRESH {
            sampler.sample();
        }
        let samples = sampler.since(self.unseen);
        // Not the present: what the background is reading meanwhile is stamped when it is stored.
        if let Some(last) = samples.last() {
            self.unseen = last.at + Duration::from_nanos(1);
        }
        samples.iter().flat_map(|sample| &sample.throttle).any(|throttle| throttle.spoils())
    }

    /// The clock at the end of a window, and what held it back in it. Looking leaves the device idle for a moment: where an
    /// arm is to show the pace that it keeps up alone, the background's last look must do.
    pub fn state(&mut self, phase: Phase) -> Option<State> {
        let sampler = self.sampler?;
        if phase == Phase::Measure && now().saturating_sub(sampler.latest().at) > FRESH {
            sampler.sample();
        }
        let samples = sampler.since(self.unstated);
        let latest = samples.last().cloned().unwrap_or_else(|| sampler.latest());
        self.unstated = latest.at + Duration::from_nanos(1);
        let held_back = samples.iter().chain([&latest]).any(|sample| !sample.throttle.is_empty());
        Some(State { clock_mhz: latest.clock_mhz, held_back })
    }

    /// Energy used so far.
    pub fn joules(&mut self) -> Option<f64> {
        let joules = self.energy.then(|| self.sampler?.joules()).flatten();
        // One that has no counter is not asked again.
        self.energy = joules.is_some();
        joules
    }

    /// What was seen, each sample with the round after which it was taken.
    pub fn end(self) -> Option<Telemetry> {
        let sampler = self.sampler?;
        let told = |sample: &Sample| TelemetrySample {
            round: self.rounds.partition_point(|&ended| ended <= sample.at) as u32,
            clock_mhz: sample.clock_mhz,
            memory_clock_mhz: sample.memory_clock_mhz,
            power_w: sample.power_w,
            temperature_c: sample.temperature_c,
            throttle: sample.throttle.iter().map(ToString::to_string).collect(),
        };
        let samples = thinned(&sampler.since(self.begun)).iter().map(told).collect();
        let (source, idle_power_w) = (sampler.name().into(), self.idle_power_w);
        Some(Telemetry { source, samples, idle_power_w, ..Telemetry::default() })
    }
}

/// Some of the samples, evenly, each with what held the device back until the next.
fn thinned(samples: &[Sample]) -> Vec<Sample> {
    let step = samples.len().div_ceil(MOST_SAMPLES).max(1);
    let kept = samples.chunks(step).map(|together| {
        let mut throttle: Vec<Throttle> = together.iter().flat_map(|sample| &sample.throttle).copied().collect();
        throttle.sort_unstable();
        throttle.dedup();
        Sample { throttle, ..together[0].clone() }
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const NEVER: Duration = Duration::from_secs(3600);

    /// Is too hot in one of its samples.
    struct Hot {
        taken: u32,
        hot: u32,
    }

    impl Source for Hot {
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
        fn others(&mut self, _: &[u32]) -> Result<Vec<String>, String> {
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
    fn every_round_is_looked_at_when_it_ends() {
        let mut sensors = Sensors::looking(Box::new(Hot { taken: 0, hot: 3 }), NEVER).unwrap();
        let mut watch = sensors.begin();
        let mut spoilt = Vec::new();
        for _ in 0..3 {
            std::thread::sleep(FRESH + Duration::from_millis(1));
            spoilt.push(watch.spoilt());
            watch.round();
        }
        assert_eq!(spoilt, [false, true, false]);
        let telemetry = watch.end().unwrap();
        assert_eq!(telemetry.idle_power_w, Some(70.0), "the first look of all");
        let seen: Vec<_> = telemetry.samples.iter().map(|sample| (sample.round, sample.clock_mhz.unwrap())).collect();
        assert_eq!(seen, [(1, 2), (2, 3), (3, 4)]);
    }

    #[test]
    fn a_sample_between_two_looks_spoils_one_round() {
        let mut sensors = Sensors::looking(Box::new(Hot { taken: 0, hot: 2 }), NEVER).unwrap();
        let mut watch = sensors.begin();
        assert!(!watch.spoilt());
        watch.sampler.unwrap().sample();
        assert!(watch.spoilt());
        assert!(!watch.spoilt());
    }

    #[test]
    fn what_held_the_device_back_is_not_thinned_out() {
        let sample = |n: u32| Sample {
            clock_mhz: Some(n),
            throttle: match n {
                3 => vec![Throttle::Thermal, Throttle::PowerCap],
                4 => vec![Throttle::Thermal],
                _ => vec![],
            },
            ..Sample::default()
        };
        let samples: Vec<Sample> = (0..5 * MOST_SAMPLES as u32).map(sample).collect();
        let thinned = thinned(&samples);
        assert_eq!(thinned.len(), MOST_SAMPLES);
        assert_eq!(thinned[0], Sample { throttle: vec![Throttle::PowerCap, Throttle::Thermal], ..sample(0) });
        assert!(thinned[1..].iter().all(|sample| sample.throttle.is_empty()));
    }
}
