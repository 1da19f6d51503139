//! Rates, and where they stand against the machine's peaks.

use super::column::{Column, Field, Read};
use super::number::no_number;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Rates, and where they stand against the machine's peaks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Arithmetic rate in 10¹² operations per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub tflops: Option<f64>,
    /// Memory rate in 10⁹ bytes per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub gbps: Option<f64>,
    /// Where the case stands against the machine's measured peaks.
    #[serde(default, skip_serializing_if = "Roofline::is_absent")]
    pub roofline: Option<Box<Roofline>>,
}

/// Where a case stands against the machine's measured peaks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// What limits the case.
    pub bound: Roof,
    /// Percent of that limit reached.
    pub percent: f64,
    /// Which of its peaks that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// Percent of the compute peak.
    #[serde(default, skip_serializing_if = "no_number")]
    pub compute_percent: Option<f64>,
    /// Percent of the bandwidth peak.
    #[serde(default, skip_serializing_if = "no_number")]
    pub memory_percent: Option<f64>,
    /// The compute peak in 10¹² operations per second, under continuous load.
    #[serde(default, skip_serializing_if = "no_number")]
    pub peak_tflops: Option<f64>,
    /// The same for a moment: what no right kernel exceeds.
    #[serde(default, skip_serializing_if = "no_number")]
    pub burst_tflops: Option<f64>,
    /// The bandwidth peak in 10⁹ bytes per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub peak_gbps: Option<f64>,
}

/// What of a machine limits a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Roof {
    /// The rate of its memory.
    #[default]
    Memory,
    /// The rate of its last cache.
    Cache,
    /// The rate of its products.
    Compute,
}

impl Roof {
    /// The word used in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cache => "cache",
            Self::Compute => "compute",
        }
    }
}

impl fmt::Display for Roof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How long a device kept up a peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Against {
    /// For a moment: the fastest window.
    Burst,
    /// For a second of continuous load: the middle window.
    Sustained,
}

impl Against {
    /// The word used in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::Sustained => "sustained",
        }
    }
}

impl Roofline {
    pub(super) fn is_absent(this: &Option<Box<Roofline>>) -> bool {
        no_number(&this.as_ref().map(|roofline| roofline.percent))
    }
}

impl Rates {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "tflops",
            field: "tflops",
            unit: "10¹² operations/s",
            doc: "`flops` over the median",
            read: Read::Number(|rates| rates.tflops),
        },
        Column {
            name: "gbps",
            field: "gbps",
            unit: "10⁹ bytes/s",
            doc: "`bytes` over the median",
            read: Read::Number(|rates| rates.gbps),
        },
        Column {
            name: "roofline_bound",
            field: "roofline.bound",
            unit: "",
            doc: "the measured peak that the case is nearest to: `compute`, `memory`, or `cache` where operands may come from it. Absent in regimes of the host and for what travels between devices",
            read: Read::Text(|rates| rates.roofline.as_ref().map(|roof| roof.bound.as_str())),
        },
        Column {
            name: "roofline_percent",
            field: "roofline.percent",
            unit: "%",
            doc: "its share of that peak",
            read: Read::Number(|rates| rates.roofline.as_ref().map(|roof| roof.percent)),
        },
        Column {
            name: "roofline_against",
            field: "roofline.against",
            unit: "",
            doc: "which peak that is: `sustained`, reached by products under continuous load, or `burst`, reached by memory and cache for a moment",
            read: Read::Text(|rates| rates.roofline.as_ref()?.against.map(Against::as_str)),
        },
        Column {
            name: "compute_percent",
            field: "roofline.compute_percent",
            unit: "%",
            doc: "its share of the compute peak under continuous load; more than 100 where the device was faster for a while",
            read: Read::Number(|rates| rates.roofline.as_ref()?.compute_percent),
        },
        Column {
            name: "memory_percent",
            field: "roofline.memory_percent",
            unit: "%",
            doc: "its share of the peak of memory or cache",
            read: Read::Number(|rates| rates.roofline.as_ref()?.memory_percent),
        },
    ];

    /// Its fields that no column shows.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field {
            name: "roofline.peak_tflops",
            kind: "number, 10¹² operations/s",
            doc: "the compute peak under continuous load",
        },
        Field {
            name: "roofline.burst_tflops",
            kind: "number, 10¹² operations/s",
            doc: "the compute peak for a moment, which no right kernel exceeds",
        },
        Field { name: "roofline.peak_gbps", kind: "number, 10⁹ bytes/s", doc: "the peak of memory or cache" },
    ];
}
