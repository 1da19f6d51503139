//! Prediction of durations before any measurement. It balances shards, and serves `--dry-run` and the initial progress
//! estimate. It assumes tuned kernels and known peaks.

use super::{Group, Plan};
use calorimeter_case::{Case, Device};
use calorimeter_timing::Options;
use std::iter::Sum;
use std::ops::{Add, Mul};

/// Seconds to open and check a workload; on a GPU including kernel compilation.
const OPENED_ON_CPU: f64 = 0.1;
const OPENED_ON_GPU: f64 = 1.0;
/// Bytes of a case that the host generates and checks per second.
const HOST: f64 = 5e8;
/// Seconds of a case on the mock device, whose time is simulated.
const SCRIPTED: f64 = 0.01;

/// Predicted seconds of cases.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Predicted {
    /// Generating tensors, and checking outputs.
    pub prepared: f64,
    /// Warm-up and measurement if times converge as early as possible.
    pub measured_least: f64,
    /// Warm-up and measurement if times never converge.
    pub measured_most: f64,
}

impl Predicted {
    /// Predicts one case in one process.
    pub fn of(case: &Case, timing: &Options) -> Self {
        if matches!(case.device, Device::Mock(_)) {
            return Self { prepared: SCRIPTED, ..Self::default() };
        }
        let (flops, bytes) = (case.flops.unwrap_or(0) as f64, case.bytes.unwrap_or(0) as f64);
        // Typical rates of a processor and a GPU; only the order of magnitude matters.
        let (opened, operations, traffic) = match case.device {
            Device::Cpu => (OPENED_ON_CPU, 3e10, 1e10),
            _ => (OPENED_ON_GPU, 1e14, 1e12),
        };
        let launch = (flops / operations).max(bytes / traffic);
        let windows = f64::from(timing.min_windows) * launch.max(timing.window.as_secs_f64());
        let most = timing.max_time.as_secs_f64().max(launch);
        let least = windows.max(timing.min_time.as_secs_f64()).min(most);
        let warm_up = timing.warm_up.as_secs_f64().max(launch);
        Self {
            prepared: opened + bytes / HOST,
            measured_least: warm_up + least,
            measured_most: warm_up.max(timing.max_warm_up.as_secs_f64()) + most,
        }
    }

    /// Minimum total.
    pub fn least(&self) -> f64 {
        self.prepared + self.measured_least
    }

    /// Maximum total.
    pub fn most(&self) -> f64 {
        self.prepared + self.measured_most
    }

    /// Expected measurement: the geometric mean of minimum and maximum.
    pub fn measured(&self) -> f64 {
        (self.measured_least * self.measured_most).sqrt()
    }

    /// Expected total.
    pub fn usual(&self) -> f64 {
        self.prepared + self.measured()
    }
}

impl Add for Predicted {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            prepared: self.prepared + other.prepared,
            measured_least: self.measured_least + other.measured_least,
            measured_most: self.measured_most + other.measured_most,
        }
    }
}

impl Sum for Predicted {
    fn sum<I: Iterator<Item = Self>>(cases: I) -> Self {
        cases.fold(Self::default(), Self::add)
    }
}

impl Mul<f64> for Predicted {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        Self {
            prepared: self.prepared * times,
            measured_least: self.measured_least * times,
            measured_most: self.measured_most * times,
        }
    }
}

impl Plan {
    /// Predictions of all supported cases.
    pub fn predicted(&self) -> impl Iterator<Item = (Case, Predicted)> {
        self.groups().iter().flat_map(|group| self.predicted_of(group))
    }

    /// Predictions of the supported cases of a group.
    pub(super) fn predicted_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = (Case, Predicted)> + 'a {
        let timing = &self.entry(group).timing;
        let supported = group.cases().iter().filter(|case| case.supported().is_ok());
        supported.map(|planned| planned.case()).map(|case| {
            let predicted = Predicted::of(&case, timing);
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
    fn a_case_takes_its_shortest_time_at_least_and_gives_up_on_precision_at_the_end_of_it() {
        let timing = Options {
            min_time: Duration::from_millis(300),
            max_time: Duration::from_secs(5),
            warm_up: Duration::from_millis(200),
            max_warm_up: Duration::from_secs(3),
            ..Options::default()
        };
        let small = Predicted::of(&case("cpu", 1000, 1000), &timing);
        assert_eq!((small.measured_least, small.measured_most), (0.5, 8.0));
        assert_eq!(small.measured(), 2.0);
        // A launch longer than all time limits still runs once.
        let large = Predicted::of(&case("cpu", 600_000_000_000, 1000), &timing);
        assert_eq!((large.measured_least, large.measured_most), (40.0, 40.0));
        let on_a_gpu = Predicted::of(&case("cuda:0", 600_000_000_000, 1000), &timing);
        assert!(on_a_gpu.measured() == 2.0 && on_a_gpu.prepared > small.prepared);
    }

    #[test]
    fn what_is_scripted_takes_no_time_of_its_own() {
        assert!(Predicted::of(&case("mock", 1 << 60, 1 << 60), &Options::default()).most() < 0.1);
    }
}
