//! Sensors of threads.

use calorimeter_timing::telemetry::{Sample, Source, now};
use serde_json::{Value, json};

/// Threads have no clock, power or temperature sensors.
pub(crate) struct ThreadSensors;

impl Source for ThreadSensors {
    fn name(&self) -> &'static str {
        "thread"
    }

    fn sample(&mut self) -> Sample {
        Sample { at: now(), ..Sample::default() }
    }

    fn joules(&mut self) -> Option<f64> {
        None
    }

    // The threads belong to this process, so there are no other users.
    fn other_users(&mut self, _: &[u32]) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    fn facts(&self) -> Value {
        json!({ "processors": std::thread::available_parallelism().ok() })
    }

    fn policy(&self) -> String {
        "unknown".into()
    }
}
