//! Times of a case and the scatter of its windows.

use super::column::{Column, Field, columns, fields, nonempty};
use super::number::is_not_finite;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;

/// Times of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// Time of one pass in nanoseconds.
    #[serde(default, skip_serializing_if = "Estimate::is_absent")]
    pub time_ns: Option<Estimate>,
    /// Time found by each process, if several measured the case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_processes_ns: Vec<f64>,
    /// Time for each placement of the buffers in memory, if one process measured several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_places_ns: Vec<f64>,
    /// Interleaved time, if `time_ns` is the isolated time because the device was throttled.
    #[serde(default, skip_serializing_if = "Estimate::is_absent")]
    pub in_turns_ns: Option<Box<Estimate>>,
    /// Time of one pass including the gaps between kernels; equal to `time_ns` if the stopwatch includes gaps.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub with_gaps_ns: Option<f64>,
    /// Share of the time with gaps in which the device was busy.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub busy: Option<f64>,
    /// Device clock in MHz of `time_ns`: the median over its windows.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub clock_mhz: Option<f64>,
    /// Share of these windows in which the device was throttled.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub held_back: Option<f64>,
    /// Raw measurements from which `time_ns` was computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowRecord>,
    /// Times of single launches in nanoseconds, if the table of another benchmark needs their percentiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations_ns: Vec<u64>,
    /// Percentiles of single launches, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_ns: Option<Box<LaunchTimes>>,
    /// True if the interval reached the requested precision within the time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged: Option<bool>,
    /// Scatter of the windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<Scatter>,
    /// Host time to enqueue one pass while the queue is not full.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub enqueue_ns: Option<f64>,
    /// True if the host takes about as long to launch as the device to execute, or longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_bound: Option<bool>,
}

/// Median with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Median.
    pub median: f64,
    /// Lower end of the 95 % interval.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub lo: Option<f64>,
    /// Upper end of the 95 % interval.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub hi: Option<f64>,
}

impl Estimate {
    pub(super) fn is_absent(this: &Option<impl Borrow<Estimate>>) -> bool {
        is_not_finite(&this.as_ref().map(|estimate| estimate.borrow().median))
    }
}

/// Raw measurement: a window of `launches` passes that took `nanos`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowRecord {
    /// Passes in the window.
    pub launches: u32,
    /// Duration of the window in nanoseconds.
    pub nanos: u64,
    /// Device clock in MHz at the end of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// True if the device was throttled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
}

/// Percentiles of single launches, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchTimes {
    /// Number of launches.
    pub count: u32,
    /// Median.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub p50: Option<f64>,
    /// 95th percentile; absent below twenty launches.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub p95: Option<f64>,
    /// 99th percentile; absent below a hundred launches.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub p99: Option<f64>,
}

/// Scatter of the windows of a case, as times per pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    /// Minimum.
    pub min: f64,
    /// 5th percentile of the windows.
    pub p05: f64,
    /// 95th percentile of the windows.
    pub p95: f64,
    /// Median absolute deviation from the median.
    pub mad: f64,
    /// Windows more than five scaled deviations from the median.
    pub outliers: u32,
    /// Correlation of each window with its predecessor.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub autocorrelation: Option<f64>,
}

impl Time {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |time|
        "time_ns" from "time_ns.median" in "ns": Number(time.time_ns.map(|time| time.median)),
            "median time of one pass";
        "time_ns_lo" from "time_ns.lo" in "ns": Number(time.time_ns?.lo), "lower end of the 95 % interval of `time_ns`";
        "time_ns_hi" from "time_ns.hi" in "ns": Number(time.time_ns?.hi), "upper end of the 95 % interval of `time_ns`";
        "n_windows" from "windows": Count(nonempty(&time.windows).map(|windows| windows.len() as u64)),
            "number of windows";
        "launches" from "windows":
            Count(nonempty(&time.windows).map(|windows| windows.iter().map(|w| u64::from(w.launches)).sum())),
            "launches in all windows";
        "time_in_turns_ns" from "in_turns_ns.median" in "ns": Number(time.in_turns_ns.as_ref().map(|time| time.median)),
            "interleaved time of one pass, if `time_ns` is the isolated time: see [Power](method.md#power-and-heat)";
        "time_with_gaps_ns" from "with_gaps_ns" in "ns": Number(time.with_gaps_ns),
            "time of one pass including the gaps between kernels: differs from `time_ns` on `cupti`, equals it on `cuda-events`, `cuda-graph` and `slope`, which include gaps";
        "busy": Number(time.busy), "busy share of `time_with_gaps_ns`, on `cupti`";
        "time_clock_mhz" from "clock_mhz" in "MHz": Number(time.clock_mhz),
            "device clock of `time_ns`: the median over its windows";
        "held_back": Number(time.held_back), "share of these windows in which the device was throttled";
        "windows": Written(format_windows(&time.windows)),
            "raw windows in the order of rounds; as a column, in Parquet only, `launches:nanos;…`, in the record a list of `launches` and `nanos`";
        "of_processes_ns": Written(format_list(&time.of_processes_ns)),
            "time found by each process, in order, with `--launches`; as a column, in Parquet only, `nanos;…`, in the record a list";
        "of_places_ns": Written(format_list(&time.of_places_ns)),
            "time for each placement of the buffers in memory, for operators on a CPU or an emulated GPU; formatted like `of_processes_ns`";
        // ANCHOR: column
        "converged": Flag(time.converged), "true if the intervals reached the requested precision";
        // ANCHOR_END: column
        "time_ns_min" from "scatter.min" in "ns": Number(time.scatter.map(|scatter| scatter.min)),
            "shortest window, per pass";
        "time_ns_p05" from "scatter.p05" in "ns": Number(time.scatter.map(|scatter| scatter.p05)),
            "5th percentile of the windows: see [Method](method.md#what-scatters)";
        "time_ns_p95" from "scatter.p95" in "ns": Number(time.scatter.map(|scatter| scatter.p95)),
            "95th percentile of the windows";
        "time_ns_mad" from "scatter.mad" in "ns": Number(time.scatter.map(|scatter| scatter.mad)),
            "median absolute deviation from the median";
        "outliers" from "scatter.outliers": Count(time.scatter.map(|scatter| scatter.outliers.into())),
            "windows far from the median; none is dropped";
        "autocorrelation" from "scatter.autocorrelation": Number(time.scatter?.autocorrelation),
            "rank correlation of each window with its predecessor, from −1 to 1; absent below thirty windows";
        "launch_p50_ns" from "launch_ns.p50" in "ns": Number(time.launch_ns.as_ref()?.p50),
            "median of single launches, with `percentiles`: see [Method](method.md#single-launches)";
        "launch_p95_ns" from "launch_ns.p95" in "ns": Number(time.launch_ns.as_ref()?.p95),
            "95th percentile of single launches; absent below twenty launches";
        "launch_p99_ns" from "launch_ns.p99" in "ns": Number(time.launch_ns.as_ref()?.p99),
            "99th percentile of single launches; absent below a hundred launches";
        "enqueue_ns" in "ns": Number(time.enqueue_ns),
            "host time to enqueue one pass; on GPUs, in `device-cold` and `device-hot`";
        "launch_bound": Flag(time.launch_bound),
            "true if the host takes about as long to launch as the device to execute, or longer";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "windows.launches": "whole number", "passes of one window";
        "windows.nanos": "whole number, ns", "duration of the window by the clock";
        "windows.clock_mhz": "whole number, MHz", "device clock at the end of the window";
        "windows.held_back": "true or absent", "true if the device was throttled";
        "iterations_ns": "list of ns",
            "times of single launches, if the case has an `export`: see [tables](accelerator.md#tables)";
        "launch_ns.count": "whole number", "number of timed single launches";
        "in_turns_ns.lo": "number, ns", "lower end of the 95 % interval of the interleaved time";
        "in_turns_ns.hi": "number, ns", "upper end of the 95 % interval of the interleaved time";
    };
}

/// Formats windows as `launches:nanos;…`; `None` if there are none.
fn format_windows(windows: &[WindowRecord]) -> Option<String> {
    let format = |window: &WindowRecord| format!("{}:{}", window.launches, window.nanos);
    nonempty(windows).map(|windows| windows.iter().map(format).collect::<Vec<_>>().join(";"))
}

/// Formats times separated by `;`, each with the shortest digits that parse to the same value.
fn format_list(nanos: &[f64]) -> Option<String> {
    nonempty(nanos).map(|nanos| nanos.iter().map(f64::to_string).collect::<Vec<_>>().join(";"))
}
