//! Duration and precision of a measurement.

use crate::TimingError;
use std::time::Duration;

/// Options of [`crate::measure`].
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Options {
    /// Maximum relative half-width of all intervals at which measuring stops.
    pub precision: f64,
    /// Minimum number of windows.
    pub min_windows: u32,
    /// Maximum number of windows.
    pub max_windows: u32,
    /// Minimum measuring time per arm.
    pub min_time: Duration,
    /// Maximum measuring time per arm; a result that is not precise by then is marked as not converged.
    pub max_time: Duration,
    /// Minimum duration of a window, which determines its number of launches.
    pub window: Duration,
    /// Minimum warm-up; it continues until windows agree.
    pub warm_up: Duration,
    /// Maximum warm-up.
    pub max_warm_up: Duration,
    /// Margin of equality: a speed-up whose whole interval is within this share of 1 is no difference.
    pub margin: f64,
    /// Seed of the order of arms and window lengths.
    pub seed: u64,
    /// Measure energy for half a second per arm, if the device has a counter.
    pub energy: bool,
}

impl Options {
    /// Checks the options; an error names the invalid one.
    pub fn check(&self) -> Result<(), TimingError> {
        for (option, value) in [("precision", self.precision), ("margin", self.margin)] {
            if value.is_nan() || value < 0.0 {
                return Err(TimingError::InvalidOption { option, value });
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
    fn invalid_precision_and_margin_are_rejected() {
        assert!(Options::default().check().is_ok());
        assert!(Options { precision: 0.0, margin: 0.0, ..Options::default() }.check().is_ok());
        let error = Options { precision: f64::NAN, ..Options::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "invalid option precision: NaN; expected zero or more");
        assert!(Options { margin: -0.02, ..Options::default() }.check().is_err());
    }
}
