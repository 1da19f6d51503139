//! Throughput and the roofline.

use super::column::{CellReader, Column, Field};
use super::number::is_not_finite;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Throughput and its share of the measured peaks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Compute throughput in 10¹² operations per second.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub tflops: Option<f64>,
    /// Memory throughput in 10⁹ bytes per second.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub gbps: Option<f64>,
    /// Position under the roofline of the measured peaks.
    #[serde(default, skip_serializing_if = "Roofline::is_absent")]
    pub roofline: Option<Box<Roofline>>,
}

/// Position of a case under the roofline of the machine's measured peaks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// Peak that limits the case.
    pub bound: RooflineBound,
    /// Percent of the limiting peak.
    pub percent: f64,
    /// Kind of the limiting peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<PeakKind>,
    /// Percent of the compute peak.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub compute_percent: Option<f64>,
    /// Percent of the bandwidth peak.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub memory_percent: Option<f64>,
    /// Compute peak in 10¹² operations per second, under continuous load.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub peak_tflops: Option<f64>,
    /// Short-term compute peak in 10¹² operations per second; no correct kernel exceeds it.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub burst_tflops: Option<f64>,
    /// Bandwidth peak in 10⁹ bytes per second.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub peak_gbps: Option<f64>,
}

/// Resource that limits a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RooflineBound {
    /// Memory bandwidth.
    #[default]
    Memory,
    /// Bandwidth of the last-level cache.
    Cache,
    /// Matmul throughput.
    Compute,
}

impl RooflineBound {
    /// Name in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cache => "cache",
            Self::Compute => "compute",
        }
    }
}

impl fmt::Display for RooflineBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Duration for which a peak was sustained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PeakKind {
    /// Short-term: the fastest window.
    Burst,
    /// Continuous load for one second: the median window.
    Sustained,
}

impl PeakKind {
    /// Name in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::Sustained => "sustained",
        }
    }
}

impl Roofline {
    pub(super) fn is_absent(this: &Option<Box<Roofline>>) -> bool {
        is_not_finite(&this.as_ref().map(|roofline| roofline.percent))
    }
}

impl Rates {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "tflops",
            field: "tflops",
            unit: "10¹² operations/s",
            doc: "`flops` divided by the median time",
            read: CellReader::Number(|rates| rates.tflops),
        },
        Column {
            name: "gbps",
            field: "gbps",
            unit: "10⁹ bytes/s",
            doc: "`bytes` divided by the median time",
            read: CellReader::Number(|rates| rates.gbps),
        },
        Column {
            name: "roofline_bound",
            field: "roofline.bound",
            unit: "",
            doc: "closest measured peak: `compute`, `memory`, or `cache` if operands may come from the cache. Absent in host regimes and for transfers between devices",
            read: CellReader::Text(|rates| rates.roofline.as_ref().map(|roof| roof.bound.as_str())),
        },
        Column {
            name: "roofline_percent",
            field: "roofline.percent",
            unit: "%",
            doc: "percent of that peak",
            read: CellReader::Number(|rates| rates.roofline.as_ref().map(|roof| roof.percent)),
        },
        Column {
            name: "roofline_against",
            field: "roofline.against",
            unit: "",
            doc: "kind of that peak: `sustained` (matmul under continuous load) or `burst` (short-term peak of memory and cache)",
            read: CellReader::Text(|rates| rates.roofline.as_ref()?.against.map(PeakKind::as_str)),
        },
        Column {
            name: "compute_percent",
            field: "roofline.compute_percent",
            unit: "%",
            doc: "percent of the compute peak under continuous load; more than 100 if the device was faster for a while",
            read: CellReader::Number(|rates| rates.roofline.as_ref()?.compute_percent),
        },
        Column {
            name: "memory_percent",
            field: "roofline.memory_percent",
            unit: "%",
            doc: "percent of the peak of memory or cache",
            read: CellReader::Number(|rates| rates.roofline.as_ref()?.memory_percent),
        },
    ];

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field {
            name: "roofline.peak_tflops",
            kind: "number, 10¹² operations/s",
            doc: "compute peak under continuous load",
        },
        Field {
            name: "roofline.burst_tflops",
            kind: "number, 10¹² operations/s",
            doc: "short-term compute peak, which no correct kernel exceeds",
        },
        Field { name: "roofline.peak_gbps", kind: "number, 10⁹ bytes/s", doc: "peak of memory or cache" },
    ];
}
