//! Duration and precision of a measurement.

use crate::TimingError;
use std::time::Duration;

/// Options of a measurement, as fields or through methods:
///
/// ```
/// use calorimeter_timing::Options;
///
/// let options = Options { precision: 0.005, seed: 1, ..Options::default() };
/// assert_eq!(options, Options::default().with_precision(0.005).with_seed(1));
/// ```
// Not `#[non_exhaustive]`, because that forbids `..Options::default()` in other crates. A caller who uses it, or the
// methods `with_*`, also compiles with fields that are added later.
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

macro_rules! builder_methods {
    ($($method:ident($field:ident: $type:ty)),+ $(,)?) => {$(
        #[doc = concat!("Returns the options with this [`", stringify!($field), "`](Self::", stringify!($field), ").")]
        #[must_use]
        pub fn $method(self, $field: $type) -> Self {
            Self { $field, ..self }
        }
    )+};
}

impl Options {
    builder_methods! {
        with_precision(precision: f64),
        with_min_windows(min_windows: u32),
        with_max_windows(max_windows: u32),
        with_min_time(min_time: Duration),
        with_max_time(max_time: Duration),
        with_window(window: Duration),
        with_warm_up(warm_up: Duration),
        with_max_warm_up(max_warm_up: Duration),
        with_margin(margin: f64),
        with_seed(seed: u64),
        with_energy(energy: bool),
    }

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
    fn builder_methods_set_their_fields() {
        let second = Duration::from_secs(1);
        let built = Options::default()
            .with_precision(0.5)
            .with_min_windows(1)
            .with_max_windows(2)
            .with_min_time(second)
            .with_max_time(second * 2)
            .with_window(second * 3)
            .with_warm_up(second * 4)
            .with_max_warm_up(second * 5)
            .with_margin(0.25)
            .with_seed(3)
            .with_energy(false);
        let expected = Options {
            precision: 0.5,
            min_windows: 1,
            max_windows: 2,
            min_time: second,
            max_time: second * 2,
            window: second * 3,
            warm_up: second * 4,
            max_warm_up: second * 5,
            margin: 0.25,
            seed: 3,
            energy: false,
        };
        assert_eq!(built, expected);
    }

    #[test]
    fn invalid_precision_and_margin_are_rejected() {
        assert!(Options::default().check().is_ok());
        assert!(Options { precision: 0.0, margin: 0.0, ..Options::default() }.check().is_ok());
        for (options, invalid) in [
            (Options::default().with_precision(f64::NAN), "precision"),
            (Options::default().with_margin(-0.02), "margin"),
        ] {
            let result = options.check();
            assert!(
                matches!(result, Err(TimingError::InvalidOption { option, .. }) if option == invalid),
                "{result:?}"
            );
        }
    }
}
