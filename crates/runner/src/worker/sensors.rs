//! A device's sensors while its cases are measured.

use super::protocol::Told;
use crate::sensors;
use calorimeter_sinks::record::{Telemetry, TelemetrySample};
use calorimeter_timing::Work;
use calorimeter_timing::telemetry::{CounterValues, Counters, Sample, Sampler, Throttle, now};
use calorimeter_zoo::Device;
use std::time::Duration;

/// The sensors of a worker's device, looked at in the background.
pub struct Sensors {
    sampler: Option<Sampler>,
    policy: String,
}

/// Often enough to see a throttled round, seldom enough not to be seen in one.
const PERIOD: Duration = Duration::from_millis(100);
/// More samples than this say no more.
const MOST_SAMPLES: usize = 64;

impl Sensors {
    /// Begins to look. A device that should have sensors and has none says on standard error why.
    pub fn of(device: Device, told: &Told) -> Self {
        match sensors::of(device, told) {
            _ if device == Device::Mock => Self { sampler: None, policy: String::new() },
            Ok(source) => {
                let policy = source.policy();
                Self { sampler: Some(Sampler::start(source, PERIOD)), policy }
            }
            Err(why) => {
                eprintln!("no telemetry: {why}");
                Self { sampler: None, policy: String::new() }
            }
        }
    }

    /// How clocks and power are set.
    pub fn policy(&self) -> String {
        self.policy.clone()
    }

    /// Watches one measurement.
    pub fn begin(&mut self) -> Watch<'_> {
        let begun = now();
        Watch { sampler: self.sampler.as_ref(), begun, looked: begun, rounds: Vec::new(), energy: true }
    }
}

/// What the processor's own counters say of one launch, where the system lets them be read.
pub fn count(work: &mut dyn Work, launches: u32) -> Option<CounterValues> {
    let mut counters = Counters::open().ok()?;
    counters.start().ok()?;
    for _ in 0..launches {
        work.launch().ok()?;
    }
    work.settle().ok()?;
    counters.read().ok()
}

/// The sensors during one measurement.
pub struct Watch<'a> {
    sampler: Option<&'a Sampler>,
    begun: Duration,
    /// When it was last asked whether the device was held back.
    looked: Duration,
    /// When each round ended.
    rounds: Vec<Duration>,
    /// Whether the device counts its energy, as far as is known.
    energy: bool,
}

impl Watch<'_> {
    /// A round has ended.
    pub fn round(&mut self) {
        self.rounds.push(now());
    }

    /// Whether the device was held back since this was last asked.
    pub fn spoilt(&mut self) -> bool {
        let since = std::mem::replace(&mut self.looked, now());
        let spoils = |sample: &Sample| sample.throttle.iter().copied().any(Throttle::spoils);
        self.sampler.is_some_and(|sampler| sampler.since(since).iter().any(spoils))
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
        let samples = sampler.since(self.begun);
        let step = samples.len().div_ceil(MOST_SAMPLES).max(1);
        let told = |sample: &Sample| TelemetrySample {
            round: self.rounds.partition_point(|&ended| ended <= sample.at) as u32,
            clock_mhz: sample.clock_mhz,
            memory_clock_mhz: sample.memory_clock_mhz,
            power_w: sample.power_w,
            temperature_c: sample.temperature_c,
            throttle: sample.throttle.iter().map(ToString::to_string).collect(),
        };
        let samples = samples.iter().step_by(step).map(told).collect();
        Some(Telemetry { source: sampler.name().into(), samples, ..Telemetry::default() })
    }
}
