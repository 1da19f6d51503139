//! How long cases take, roughly, before any of them was measured: what the parts of a plan are balanced by, what `--dry-run`
//! tells, and what progress begins with. Kernels are taken to be tuned and the device's peaks to be known.

use super::{Group, Plan};
use calorimeter_case::{Case, Device};
use calorimeter_timing::Options;
use std::iter::Sum;
use std::ops::{Add, Mul};

/// What a case takes besides its launches: its workload is opened and judged, on a GPU with kernels that are compiled.
const OPENED_ON_CPU: f64 = 0.1;
const OPENED_ON_GPU: f64 = 1.0;
/// How many bytes of a case the host makes and judges in a second.
const HOST: f64 = 5e8;
/// What a case of the scripted device takes, whose clock runs as fast as it is read.
const SCRIPTED: f64 = 0.01;

/// The seconds that cases are predicted to take.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Predicted {
    /// Making their tensors, and judging what comes out.
    pub prepared: f64,
    /// Warming up and measuring, where times agree as soon as they may.
    pub measured_least: f64,
    /// The same where they never agree.
    pub measured_most: f64,
}

impl Predicted {
    /// One case, in one process.
    pub fn of(case: &Case, timing: &Options) -> Self {
        if matches!(case.device, Device::Mock(_)) {
            return Self { prepared: SCRIPTED, ..Self::default() };
        }
        let (flops, bytes) = (case.flops.unwrap_or(0) as f64, case.bytes.unwrap_or(0) as f64);
        // A usual processor, and a usual GPU: what counts is the order of magnitude.
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

    /// The shortest time.
    pub fn least(&self) -> f64 {
        self.prepared + self.measured_least
    }

    /// The longest time.
    pub fn most(&self) -> f64 {
        self.prepared + self.measured_most
    }

    /// Of measuring: as many times the shortest as the longest is of it.
    pub fn measured(&self) -> f64 {
        (self.measured_least * self.measured_most).sqrt()
    }

    /// All of it.
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
    /// Every case that can run, with what it is predicted to take.
    pub fn predicted(&self) -> impl Iterator<Item = (Case, Predicted)> {
        self.groups().iter().flat_map(|group| self.predicted_of(group))
    }

    /// The same of a group.
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
        // A launch that takes longer than all of that is launched all the same.
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
