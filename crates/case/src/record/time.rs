//! How long a run took, and how its windows scatter.

use super::number::no_number;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;

/// How long a run took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// The time of one run in nanoseconds.
    #[serde(default, skip_serializing_if = "Estimate::is_absent")]
    pub time_ns: Option<Estimate>,
    /// What each process found, where several measured the case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_processes_ns: Vec<f64>,
    /// The time in turns with the cases beside it, where `time_ns` is of the case alone because power or heat held the device
    /// back.
    #[serde(default, skip_serializing_if = "Estimate::is_absent")]
    pub in_turns_ns: Option<Box<Estimate>>,
    /// The time of one run with the gaps between kernels: `time_ns` itself where its clock counts them.
    #[serde(default, skip_serializing_if = "no_number")]
    pub with_gaps_ns: Option<f64>,
    /// The share of the time with gaps in which the device was busy.
    #[serde(default, skip_serializing_if = "no_number")]
    pub busy: Option<f64>,
    /// The device's clock in MHz at which `time_ns` was taken: the median over its windows.
    #[serde(default, skip_serializing_if = "no_number")]
    pub clock_mhz: Option<f64>,
    /// The share of these windows in which power or heat held the clock back.
    #[serde(default, skip_serializing_if = "no_number")]
    pub held_back: Option<f64>,
    /// The raw measurements that `time_ns` was computed from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Times of single launches in nanoseconds, where another program's table wants their percentiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations_ns: Vec<u64>,
    /// How long launches took one by one, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_ns: Option<Box<LaunchTimes>>,
    /// Whether the interval became as narrow as asked before the time was up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged: Option<bool>,
    /// How the windows scatter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<Scatter>,
    /// Host time of enqueuing one run, the queue not being full.
    #[serde(default, skip_serializing_if = "no_number")]
    pub enqueue_ns: Option<f64>,
    /// Whether the host enqueues runs about as slowly as the device works, or more slowly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_bound: Option<bool>,
}

/// A figure with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The middle value.
    pub median: f64,
    /// Lower end of the 95 % interval.
    #[serde(default, skip_serializing_if = "no_number")]
    pub lo: Option<f64>,
    /// Upper end of the 95 % interval.
    #[serde(default, skip_serializing_if = "no_number")]
    pub hi: Option<f64>,
}

impl Estimate {
    pub(super) fn is_absent(this: &Option<impl Borrow<Estimate>>) -> bool {
        no_number(&this.as_ref().map(|estimate| estimate.borrow().median))
    }
}

/// One raw measurement: `launches` runs took `nanos` together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Runs inside the window.
    pub launches: u32,
    /// Nanoseconds from its opening to its closing.
    pub nanos: u64,
    /// The device's clock in MHz at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Whether power or heat held the clock back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
}

/// How long launches took one by one, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchTimes {
    /// How many there were.
    pub count: u32,
    /// Half of them took longer.
    #[serde(default, skip_serializing_if = "no_number")]
    pub p50: Option<f64>,
    /// One in twenty took longer; absent where there were fewer.
    #[serde(default, skip_serializing_if = "no_number")]
    pub p95: Option<f64>,
    /// One in a hundred took longer; absent where there were fewer.
    #[serde(default, skip_serializing_if = "no_number")]
    pub p99: Option<f64>,
}

/// How the windows of a case scatter, as times per run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    /// The shortest.
    pub min: f64,
    /// Below it are 5 % of the windows.
    pub p05: f64,
    /// Below it are 95 % of the windows.
    pub p95: f64,
    /// Median absolute deviation from the median.
    pub mad: f64,
    /// Windows more than five scaled deviations from the median.
    pub outliers: u32,
    /// Correlation of each window with the one before.
    #[serde(default, skip_serializing_if = "no_number")]
    pub autocorrelation: Option<f64>,
}
