//! What can be known of threads while they work.

use calorimeter_timing::telemetry::{Sample, Source, now};
use serde_json::{Value, json};

/// A thread has no clock, no power and no temperature of its own.
pub struct ThreadSensors;

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

    // They belong to this process, and nobody else gives them work.
    fn others(&mut self, _: &[u32]) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    fn facts(&self) -> Value {
        json!({ "processors": std::thread::available_parallelism().ok() })
    }

    fn policy(&self) -> String {
        "unknown".into()
    }
}
