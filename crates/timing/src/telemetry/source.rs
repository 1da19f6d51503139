//! Samples, and what gives them.

use super::Throttle;
use crate::{Stopwatch, WallClock};
use serde_json::{Map, Value};
use std::time::Duration;

/// One look at a device's sensors.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// When, by [`now`]; a [`Sampler`](super::Sampler) makes it the moment from which the sample can be found.
    pub at: Duration,
    /// Clock of the multiprocessors, or the mean of the processor's cores, in MHz.
    pub clock_mhz: Option<u32>,
    /// Clock of the device's memory in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Power in watts.
    pub power_w: Option<f64>,
    /// Temperature in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// What held the clock back at this moment or, where the device counts it, since the sample before. Each once.
    pub throttle: Vec<Throttle>,
}

/// The sensors of one device. They are read, and nothing is ever set.
pub trait Source: Send {
    /// Where the figures come from.
    fn name(&self) -> &'static str;

    /// Looks at every sensor.
    fn sample(&mut self) -> Sample;

    /// Energy that the device has used since a fixed moment, in joules, where it has a counter. Counters move in steps
    /// of up to a tenth of a second: only differences over several of them mean something.
    fn joules(&mut self) -> Option<f64>;

    /// Who else uses the device, a line for each, besides this process and the ones given. Where shares of time are
    /// compared, they are those since the call before, and a process counts as ours from the first call that names it.
    /// An error says why it cannot be known.
    fn others(&mut self, ours: &[u32]) -> Result<Vec<String>, String>;

    /// What a reader of the figures must know of the device: a JSON object that has only the fields that are known.
    fn facts(&self) -> Value;

    /// How clocks and power are set, in words that change when somebody sets them differently.
    fn policy(&self) -> String;
}

/// Time since a fixed moment of the process, the one that stopwatches on the host count from.
pub fn now() -> Duration {
    WallClock::synchronous().now()
}

/// A JSON object of the fields that are known.
pub(super) fn known<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let known = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(known.collect::<Map<_, _>>())
}

/// The fact that lists which readings a device does not give; absent if it gives all.
pub(super) fn not_reported<const N: usize>(readings: [(&str, bool); N]) -> Option<Value> {
    let missing: Vec<&str> = readings.into_iter().filter(|(_, given)| !given).map(|(name, _)| name).collect();
    (!missing.is_empty()).then(|| missing.into())
}

/// The parts of a policy that are known.
pub(super) fn policy<const N: usize>(parts: [Option<String>; N]) -> String {
    let known: Vec<String> = parts.into_iter().flatten().collect();
    if known.is_empty() { "unknown".to_owned() } else { known.join(", ") }
}
