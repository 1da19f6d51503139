//! Sensor sources and their samples.

use super::Throttle;
use crate::{Stopwatch, WallClock};
use serde_json::{Map, Value};
use std::time::Duration;

/// Sample of a device's sensors.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// Time of the sample, by [`now`]; a [`Sampler`](super::Sampler) sets it to the time of storage.
    pub at: Duration,
    /// Clock of the multiprocessors, or the mean over the CPU cores, in MHz.
    pub clock_mhz: Option<u32>,
    /// Clock of the device memory in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Power in watts.
    pub power_w: Option<f64>,
    /// Temperature in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Throttle reasons at this moment or, if the device counts them, since the previous sample, without duplicates.
    pub throttle: Vec<Throttle>,
}

/// Sensors of one device, read-only.
pub trait Source: Send {
    /// Name of the source.
    fn name(&self) -> &'static str;

    /// Reads all sensors.
    fn sample(&mut self) -> Sample;

    /// Energy used by the device since a fixed moment, in joules, if it has a counter. Counters move in steps of up to
    /// a tenth of a second: only differences over several steps are meaningful.
    fn joules(&mut self) -> Option<f64>;

    /// Other users of the device, one line each, except this process and `ours`. Time shares refer to the span since
    /// the previous call, and a process counts as ours from the first call that lists it. An error explains why the
    /// users are unknown.
    fn other_users(&mut self, ours: &[u32]) -> Result<Vec<String>, String>;

    /// Facts about the device: a JSON object with the known fields.
    fn facts(&self) -> Value;

    /// Description of the clock and power settings, which changes if they are set differently.
    fn policy(&self) -> String;
}

/// Time since a fixed moment of the process, shared with stopwatches on the host.
pub fn now() -> Duration {
    WallClock::synchronous().now()
}

/// JSON object of the known fields.
pub(super) fn known_fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let known = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(known.collect::<Map<_, _>>())
}

/// List of the sensors that a device does not provide; `None` if it provides all.
pub(super) fn not_reported<const N: usize>(readings: [(&str, bool); N]) -> Option<Value> {
    let missing: Vec<&str> = readings.into_iter().filter(|(_, given)| !given).map(|(name, _)| name).collect();
    (!missing.is_empty()).then(|| missing.into())
}

/// Joins the known parts of a policy.
pub(super) fn join_policy<const N: usize>(parts: [Option<String>; N]) -> String {
    let known: Vec<String> = parts.into_iter().flatten().collect();
    if known.is_empty() { "unknown".to_owned() } else { known.join(", ") }
}
