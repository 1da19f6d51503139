//! Times of a case and the scatter of its windows.

use super::column::{CellReader, Column, Field, nonempty};
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
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "time_ns",
            field: "time_ns.median",
            unit: "ns",
            doc: "median time of one pass",
            read: CellReader::Number(|time| time.time_ns.map(|time| time.median)),
        },
        Column {
            name: "time_ns_lo",
            field: "time_ns.lo",
            unit: "ns",
            doc: "lower end of the 95 % interval of `time_ns`",
            read: CellReader::Number(|time| time.time_ns?.lo),
        },
        Column {
            name: "time_ns_hi",
            field: "time_ns.hi",
            unit: "ns",
            doc: "upper end of the 95 % interval of `time_ns`",
            read: CellReader::Number(|time| time.time_ns?.hi),
        },
        Column {
            name: "n_windows",
            field: "windows",
            unit: "",
            doc: "number of windows",
            read: CellReader::Count(|time| nonempty(&time.windows).map(|windows| windows.len() as u64)),
        },
        Column {
            name: "launches",
            field: "windows",
            unit: "",
            doc: "launches in all windows",
            read: CellReader::Count(|time| {
                nonempty(&time.windows).map(|windows| windows.iter().map(|w| u64::from(w.launches)).sum())
            }),
        },
        Column {
            name: "time_in_turns_ns",
            field: "in_turns_ns.median",
            unit: "ns",
            doc: "interleaved time of one pass, if `time_ns` is the isolated time: see [Power](method.md#power-and-heat)",
            read: CellReader::Number(|time| time.in_turns_ns.as_ref().map(|time| time.median)),
        },
        Column {
            name: "time_with_gaps_ns",
            field: "with_gaps_ns",
            unit: "ns",
            doc: "time of one pass including the gaps between kernels: differs from `time_ns` on `cupti`, equals it on `cuda-events`, `cuda-graph` and `slope`, which include gaps",
            read: CellReader::Number(|time| time.with_gaps_ns),
        },
        Column {
            name: "busy",
            field: "busy",
            unit: "",
            doc: "busy share of `time_with_gaps_ns`, on `cupti`",
            read: CellReader::Number(|time| time.busy),
        },
        Column {
            name: "time_clock_mhz",
            field: "clock_mhz",
            unit: "MHz",
            doc: "device clock of `time_ns`: the median over its windows",
            read: CellReader::Number(|time| time.clock_mhz),
        },
        Column {
            name: "held_back",
            field: "held_back",
            unit: "",
            doc: "share of these windows in which the device was throttled",
            read: CellReader::Number(|time| time.held_back),
        },
        Column {
            name: "windows",
            field: "windows",
            unit: "",
            doc: "raw windows in the order of rounds; as a column, in Parquet only, `launches:nanos;…`, in the record a list of `launches` and `nanos`",
            read: CellReader::Written(|time| format_windows(&time.windows)),
        },
        Column {
            name: "of_processes_ns",
            field: "of_processes_ns",
            unit: "",
            doc: "time found by each process, in order, with `--launches`; as a column, in Parquet only, `nanos;…`, in the record a list",
            read: CellReader::Written(|time| format_list(&time.of_processes_ns)),
        },
        Column {
            name: "of_places_ns",
            field: "of_places_ns",
            unit: "",
            doc: "time for each placement of the buffers in memory, for operators on a CPU or an emulated GPU; formatted like `of_processes_ns`",
            read: CellReader::Written(|time| format_list(&time.of_places_ns)),
        },
        // ANCHOR: column
        Column {
            name: "converged",
            field: "converged",
            unit: "",
            doc: "true if the intervals reached the requested precision",
            read: CellReader::Flag(|time| time.converged),
        },
        // ANCHOR_END: column
        Column {
            name: "time_ns_min",
            field: "scatter.min",
            unit: "ns",
            doc: "shortest window, per pass",
            read: CellReader::Number(|time| time.scatter.map(|scatter| scatter.min)),
        },
        Column {
            name: "time_ns_p05",
            field: "scatter.p05",
            unit: "ns",
            doc: "5th percentile of the windows: see [Method](method.md#what-scatters)",
            read: CellReader::Number(|time| time.scatter.map(|scatter| scatter.p05)),
        },
        Column {
            name: "time_ns_p95",
            field: "scatter.p95",
            unit: "ns",
            doc: "95th percentile of the windows",
            read: CellReader::Number(|time| time.scatter.map(|scatter| scatter.p95)),
        },
        Column {
            name: "time_ns_mad",
            field: "scatter.mad",
            unit: "ns",
            doc: "median absolute deviation from the median",
            read: CellReader::Number(|time| time.scatter.map(|scatter| scatter.mad)),
        },
        Column {
            name: "outliers",
            field: "scatter.outliers",
            unit: "",
            doc: "windows far from the median; none is dropped",
            read: CellReader::Count(|time| time.scatter.map(|scatter| scatter.outliers.into())),
        },
        Column {
            name: "autocorrelation",
            field: "scatter.autocorrelation",
            unit: "",
            doc: "rank correlation of each window with its predecessor, from −1 to 1; absent below thirty windows",
            read: CellReader::Number(|time| time.scatter?.autocorrelation),
        },
        Column {
            name: "launch_p50_ns",
            field: "launch_ns.p50",
            unit: "ns",
            doc: "median of single launches, with `percentiles`: see [Method](method.md#single-launches)",
            read: CellReader::Number(|time| time.launch_ns.as_ref()?.p50),
        },
        Column {
            name: "launch_p95_ns",
            field: "launch_ns.p95",
            unit: "ns",
            doc: "95th percentile of single launches; absent below twenty launches",
            read: CellReader::Number(|time| time.launch_ns.as_ref()?.p95),
        },
        Column {
            name: "launch_p99_ns",
            field: "launch_ns.p99",
            unit: "ns",
            doc: "99th percentile of single launches; absent below a hundred launches",
            read: CellReader::Number(|time| time.launch_ns.as_ref()?.p99),
        },
        Column {
            name: "enqueue_ns",
            field: "enqueue_ns",
            unit: "ns",
            doc: "host time to enqueue one pass; on GPUs, in `device-cold` and `device-hot`",
            read: CellReader::Number(|time| time.enqueue_ns),
        },
        Column {
            name: "launch_bound",
            field: "launch_bound",
            unit: "",
            doc: "true if the host takes about as long to launch as the device to execute, or longer",
            read: CellReader::Flag(|time| time.launch_bound),
        },
    ];

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field { name: "windows.launches", kind: "whole number", doc: "passes of one window" },
        Field { name: "windows.nanos", kind: "whole number, ns", doc: "duration of the window by the clock" },
        Field { name: "windows.clock_mhz", kind: "whole number, MHz", doc: "device clock at the end of the window" },
        Field { name: "windows.held_back", kind: "true or absent", doc: "true if the device was throttled" },
        Field {
            name: "iterations_ns",
            kind: "list of ns",
            doc: "times of single launches, if `export` names a folder: see [below](#the-table-of-accelerator-microbenchmarks)",
        },
        Field { name: "launch_ns.count", kind: "whole number", doc: "number of timed single launches" },
        Field {
            name: "in_turns_ns.lo",
            kind: "number, ns",
            doc: "lower end of the 95 % interval of the interleaved time",
        },
        Field {
            name: "in_turns_ns.hi",
            kind: "number, ns",
            doc: "upper end of the 95 % interval of the interleaved time",
        },
    ];
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
