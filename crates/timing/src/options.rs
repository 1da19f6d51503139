//! How long and how precisely to measure.

use crate::TimingError;
use std::time::Duration;

/// The knobs of [`crate::measure`].
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Options {
    /// Stop when every interval's half-width is at most this share of its median.
    pub precision: f64,
    /// Never stop before this many windows.
    pub min_windows: u32,
    /// Never measure more windows than this.
    pub max_windows: u32,
    /// Never stop before an arm was measured for this long.
    pub min_time: Duration,
    /// Give up on precision after this long per arm; the result is then marked as not converged.
    pub max_time: Duration,
    /// A window holds as many launches as it takes to last this long.
    pub window: Duration,
    /// Warm up for at least this long, until windows agree.
    pub warm_up: Duration,
    /// Warm up for at most this long.
    pub max_warm_up: Duration,
    /// A speed-up whose whole interval lies within this share of 1 is no difference.
    pub margin: f64,
    /// Seed of the order of arms and window lengths.
    pub seed: u64,
    /// Follow the energy counter of a device that has one, for half a second of each arm.
    pub energy: bool,
}

impl Options {
    /// Whether one can measure by them; an error names the one that is at fault.
    pub fn check(&self) -> Result<(), TimingError> {
        for (option, value) in [("precision", self.precision), ("margin", self.margin)] {
            if value.is_nan() || value < 0.0 {
                return Err(TimingError::BadOption { option, value });
            }
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            precision: 0.01,
            min_windows: 30,
            max_windows: 2000,
            min_time: Duration::from_millis(300),
            max_time: Duration::from_secs(5),
            window: Duration::from_millis(1),
            warm_up: Duration::from_millis(200),
            max_warm_up: Duration::from_secs(3),
            margin: 0.02,
            seed: 42,
            energy: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_interval_can_be_held_against_is_refused() {
        assert!(Options::default().check().is_ok());
        assert!(Options { precision: 0.0, margin: 0.0, ..Options::default() }.check().is_ok());
        let error = Options { precision: f64::NAN, ..Options::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "the option precision is NaN; it must be zero or more");
        assert!(Options { margin: -0.02, ..Options::default() }.check().is_err());
    }
}
