//! Prediction of durations before any measurement. It balances shards, and serves `--dry-run` and the initial progress
//! estimate. It assumes tuned kernels and known peaks.

use super::{Group, Plan};
use calorimeter_case::{Case, Device};
use calorimeter_probe::platforms;
use calorimeter_timing::Options;
use std::iter::Sum;
use std::ops::{Add, Mul};

/// Seconds to open and check a workload; on a GPU including kernel compilation.
const CPU_SETUP_SECONDS: f64 = 0.1;
const GPU_SETUP_SECONDS: f64 = 1.0;
/// Bytes of a case that the host generates and checks per second.
const HOST_BYTES_PER_SECOND: f64 = 5e8;
/// Seconds of a case on a simulated device.
const SIMULATED_SECONDS: f64 = 0.01;

/// Predicted seconds of cases.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prediction {
    /// Generating tensors, and checking outputs.
    pub preparation: f64,
    /// Warm-up and measurement if times converge as early as possible.
    pub min_measurement: f64,
    /// Warm-up and measurement if times never converge.
    pub max_measurement: f64,
}

impl Prediction {
    /// Predicts one case in one process.
    pub fn for_case(case: &Case, timing: &Options) -> Self {
        if platforms::for_device(case.device).is_simulated() {
            return Self { preparation: SIMULATED_SECONDS, ..Self::default() };
        }
        let (flops, bytes) = (case.flops.unwrap_or(0) as f64, case.bytes.unwrap_or(0) as f64);
        // Typical rates of a processor and a GPU; only the order of magnitude matters.
        let (opened, operations, traffic) = match case.device {
            Device::Cpu => (CPU_SETUP_SECONDS, 3e10, 1e10),
            _ => (GPU_SETUP_SECONDS, 1e14, 1e12),
        };
        let launch = (flops / operations).max(bytes / traffic);
        let windows = f64::from(timing.min_windows) * launch.max(timing.window.as_secs_f64());
        let most = timing.max_time.as_secs_f64().max(launch);
        let least = windows.max(timing.min_time.as_secs_f64()).min(most);
        let warm_up = timing.warm_up.as_secs_f64().max(launch);
        Self {
            preparation: opened + bytes / HOST_BYTES_PER_SECOND,
            min_measurement: warm_up + least,
            max_measurement: warm_up.max(timing.max_warm_up.as_secs_f64()) + most,
        }
    }

    /// Minimum total.
    pub fn min_total(&self) -> f64 {
        self.preparation + self.min_measurement
    }

    /// Maximum total.
    pub fn max_total(&self) -> f64 {
        self.preparation + self.max_measurement
    }

    /// Expected measurement: the geometric mean of minimum and maximum.
    pub fn expected_measurement(&self) -> f64 {
        (self.min_measurement * self.max_measurement).sqrt()
    }

    /// Expected total.
    pub fn expected_total(&self) -> f64 {
        self.preparation + self.expected_measurement()
    }
}

impl Add for Prediction {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            preparation: self.preparation + other.preparation,
            min_measurement: self.min_measurement + other.min_measurement,
            max_measurement: self.max_measurement + other.max_measurement,
        }
    }
}

impl Sum for Prediction {
    fn sum<I: Iterator<Item = Self>>(cases: I) -> Self {
        cases.fold(Self::default(), Self::add)
    }
}

impl Mul<f64> for Prediction {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self {
            preparation: self.preparation * times,
            min_measurement: self.min_measurement * times,
            max_measurement: self.max_measurement * times,
        }
    }
}

impl Plan {
    /// Predictions of all supported cases.
    pub fn predictions(&self) -> impl Iterator<Item = (Case, Prediction)> {
        self.groups().iter().flat_map(|group| self.group_predictions(group))
    }

    /// Predictions of the supported cases of a group.
    pub(super) fn group_predictions<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = (Case, Prediction)> + 'a {
        let timing = &self.entry(group).timing;
        let supported = group.cases().iter().filter(|case| case.supported().is_ok());
        supported.map(|planned| planned.case()).map(|case| {
            let predicted = Prediction::for_case(&case, timing);
            (case, predicted)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn case(device: &str, flops: u64, bytes: u64) -> Case {
        Case { device: device.parse().unwrap(), flops: Some(flops), bytes: Some(bytes), ..Case::default() }
    }

    #[test]
    fn prediction_stays_within_time_limits() {
        let timing = Options {
            min_time: Duration::from_millis(300),
            max_time: Duration::from_secs(5),
            warm_up: Duration::from_millis(200),
            max_warm_up: Duration::from_secs(3),
            ..Options::default()
        };
        let small = Prediction::for_case(&case("cpu", 1000, 1000), &timing);
        assert_eq!((small.min_measurement, small.max_measurement), (0.5, 8.0));
        assert_eq!(small.expected_measurement(), 2.0);
        // A launch longer than all time limits still runs once.
        let large = Prediction::for_case(&case("cpu", 600_000_000_000, 1000), &timing);
        assert_eq!((large.min_measurement, large.max_measurement), (40.0, 40.0));
        let on_a_gpu = Prediction::for_case(&case("cuda:0", 600_000_000_000, 1000), &timing);
        assert!(on_a_gpu.expected_measurement() == 2.0 && on_a_gpu.preparation > small.preparation);
    }

    #[test]
    fn mock_cases_take_no_time() {
        assert!(Prediction::for_case(&case("mock", 1 << 60, 1 << 60), &Options::default()).max_total() < 0.1);
    }
}
