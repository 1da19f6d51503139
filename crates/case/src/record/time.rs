//! How long a run took, and how its windows scatter.

use super::column::{Column, Field, Read, some};
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
    /// What was found in each place in memory, where one process measured the case in several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_places_ns: Vec<f64>,
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

impl Time {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "time_ns",
            field: "time_ns.median",
            unit: "ns",
            doc: "the median time of one pass",
            read: Read::Number(|time| time.time_ns.map(|time| time.median)),
        },
        Column {
            name: "time_ns_lo",
            field: "time_ns.lo",
            unit: "ns",
            doc: "lower end of its 95 % interval",
            read: Read::Number(|time| time.time_ns?.lo),
        },
        Column {
            name: "time_ns_hi",
            field: "time_ns.hi",
            unit: "ns",
            doc: "upper end",
            read: Read::Number(|time| time.time_ns?.hi),
        },
        Column {
            name: "n_windows",
            field: "windows",
            unit: "",
            doc: "how many windows there are",
            read: Read::Count(|time| some(&time.windows).map(|windows| windows.len() as u64)),
        },
        Column {
            name: "launches",
            field: "windows",
            unit: "",
            doc: "launches of all windows together",
            read: Read::Count(|time| {
                some(&time.windows).map(|windows| windows.iter().map(|w| u64::from(w.launches)).sum())
            }),
        },
        Column {
            name: "time_in_turns_ns",
            field: "in_turns_ns.median",
            unit: "ns",
            doc: "time of one pass in turns with the other cases of its group, where `time_ns` is of the case alone: see [Power](method.md#power-and-heat)",
            read: Read::Number(|time| time.in_turns_ns.as_ref().map(|time| time.median)),
        },
        Column {
            name: "time_with_gaps_ns",
            field: "with_gaps_ns",
            unit: "ns",
            doc: "time of one pass with the gaps between kernels: another figure than `time_ns` on `cupti`, the same one on `cuda-events`, `cuda-graph` and `slope`, which count them",
            read: Read::Number(|time| time.with_gaps_ns),
        },
        Column {
            name: "busy",
            field: "busy",
            unit: "",
            doc: "share of that time in which the device was busy, on `cupti`",
            read: Read::Number(|time| time.busy),
        },
        Column {
            name: "time_clock_mhz",
            field: "clock_mhz",
            unit: "MHz",
            doc: "the device's clock at which `time_ns` was taken: the median over its windows",
            read: Read::Number(|time| time.clock_mhz),
        },
        Column {
            name: "held_back",
            field: "held_back",
            unit: "",
            doc: "share of these windows in which power or heat held the clock back",
            read: Read::Number(|time| time.held_back),
        },
        Column {
            name: "windows",
            field: "windows",
            unit: "",
            doc: "as read from the clock, in the order of rounds; as a column, in Parquet alone, `launches:nanos;…`, in the record a list of `launches` and `nanos`",
            read: Read::Written(|time| written(&time.windows)),
        },
        Column {
            name: "of_processes_ns",
            field: "of_processes_ns",
            unit: "",
            doc: "what each process found, in their order, where `--launches` asked for several; as a column, in Parquet alone, `nanos;…`, in the record a list",
            read: Read::Written(|time| listed(&time.of_processes_ns)),
        },
        Column {
            name: "of_places_ns",
            field: "of_places_ns",
            unit: "",
            doc: "what was found in each place in memory, for operators on a processor or an imitated GPU, written the same way",
            read: Read::Written(|time| listed(&time.of_places_ns)),
        },
        // ANCHOR: column
        Column {
            name: "converged",
            field: "converged",
            unit: "",
            doc: "whether the intervals became as narrow as asked",
            read: Read::Flag(|time| time.converged),
        },
        // ANCHOR_END: column
        Column {
            name: "time_ns_min",
            field: "scatter.min",
            unit: "ns",
            doc: "the shortest window, per pass",
            read: Read::Number(|time| time.scatter.map(|scatter| scatter.min)),
        },
        Column {
            name: "time_ns_p05",
            field: "scatter.p05",
            unit: "ns",
            doc: "5 % of the windows are below it: see [Method](method.md#what-scatters)",
            read: Read::Number(|time| time.scatter.map(|scatter| scatter.p05)),
        },
        Column {
            name: "time_ns_p95",
            field: "scatter.p95",
            unit: "ns",
            doc: "95 % are below it",
            read: Read::Number(|time| time.scatter.map(|scatter| scatter.p95)),
        },
        Column {
            name: "time_ns_mad",
            field: "scatter.mad",
            unit: "ns",
            doc: "median absolute deviation from the median",
            read: Read::Number(|time| time.scatter.map(|scatter| scatter.mad)),
        },
        Column {
            name: "outliers",
            field: "scatter.outliers",
            unit: "",
            doc: "windows far from the median, none of which is dropped",
            read: Read::Count(|time| time.scatter.map(|scatter| scatter.outliers.into())),
        },
        Column {
            name: "autocorrelation",
            field: "scatter.autocorrelation",
            unit: "",
            doc: "of each window with the one before, by rank, from −1 to 1; absent below thirty windows",
            read: Read::Number(|time| time.scatter?.autocorrelation),
        },
        Column {
            name: "launch_p50_ns",
            field: "launch_ns.p50",
            unit: "ns",
            doc: "time that half of the single launches exceed, with `percentiles`: see [Method](method.md#single-launches)",
            read: Read::Number(|time| time.launch_ns.as_ref()?.p50),
        },
        Column {
            name: "launch_p95_ns",
            field: "launch_ns.p95",
            unit: "ns",
            doc: "one in twenty exceeds it; absent where fewer were timed",
            read: Read::Number(|time| time.launch_ns.as_ref()?.p95),
        },
        Column {
            name: "launch_p99_ns",
            field: "launch_ns.p99",
            unit: "ns",
            doc: "one in a hundred exceeds it; absent where fewer were timed",
            read: Read::Number(|time| time.launch_ns.as_ref()?.p99),
        },
        Column {
            name: "enqueue_ns",
            field: "enqueue_ns",
            unit: "ns",
            doc: "host time of enqueuing one pass; on GPUs, in `device-cold` and `device-hot`",
            read: Read::Number(|time| time.enqueue_ns),
        },
        Column {
            name: "launch_bound",
            field: "launch_bound",
            unit: "",
            doc: "whether the host launches about as slowly as the device works, or more slowly",
            read: Read::Flag(|time| time.launch_bound),
        },
    ];

    /// Its fields that no column shows.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field { name: "windows.launches", kind: "whole number", doc: "passes of one window" },
        Field { name: "windows.nanos", kind: "whole number, ns", doc: "what the clock read for it" },
        Field { name: "windows.clock_mhz", kind: "whole number, MHz", doc: "the device's clock at its end" },
        Field { name: "windows.held_back", kind: "true or absent", doc: "whether power or heat held the clock back" },
        Field {
            name: "iterations_ns",
            kind: "list of ns",
            doc: "single launches, where `export` names a folder: see [below](#the-table-of-accelerator-microbenchmarks)",
        },
        Field { name: "launch_ns.count", kind: "whole number", doc: "how many single launches were timed" },
        Field { name: "in_turns_ns.lo", kind: "number, ns", doc: "lower end of its 95 % interval" },
        Field { name: "in_turns_ns.hi", kind: "number, ns", doc: "upper end" },
    ];
}

/// Windows as one text, or nothing where there are none.
fn written(windows: &[Window]) -> Option<String> {
    let written = |window: &Window| format!("{}:{}", window.launches, window.nanos);
    some(windows).map(|windows| windows.iter().map(written).collect::<Vec<_>>().join(";"))
}

/// Times as one text, each with the shortest digits that are read back as the same number.
fn listed(nanos: &[f64]) -> Option<String> {
    some(nanos).map(|nanos| nanos.iter().map(f64::to_string).collect::<Vec<_>>().join(";"))
}
