//! Throughput and the roofline.

use super::column::{Column, Field, columns, fields};
use super::number::is_not_finite;
use crate::Name;
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
    /// Dtype of the compute peak; early journals have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_dtype: Option<Name>,
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
    pub const COLUMNS: &'static [Column<Self>] = columns! { |rates|
        "tflops" in "10¹² operations/s": Number(rates.tflops), "`flops` divided by the median time";
        "gbps" in "10⁹ bytes/s": Number(rates.gbps), "`bytes` divided by the median time";
        "roofline_bound" from "roofline.bound": Text(rates.roofline.as_ref().map(|roof| roof.bound.as_str())),
            "closest measured peak: `compute`, `memory`, or `cache` if operands may come from the cache. Absent in host regimes and for transfers between devices";
        "roofline_percent" from "roofline.percent" in "%": Number(rates.roofline.as_ref().map(|roof| roof.percent)),
            "percent of that peak";
        "roofline_against" from "roofline.against": Text(rates.roofline.as_ref()?.against.map(PeakKind::as_str)),
            "kind of that peak: `sustained` (matmul under continuous load) or `burst` (short-term peak of memory and cache)";
        "compute_percent" from "roofline.compute_percent" in "%": Number(rates.roofline.as_ref()?.compute_percent),
            "percent of the compute peak under continuous load; more than 100 if the device was faster for a while";
        "memory_percent" from "roofline.memory_percent" in "%": Number(rates.roofline.as_ref()?.memory_percent),
            "percent of the peak of memory or cache";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "roofline.peak_tflops": "number, 10¹² operations/s", "compute peak under continuous load";
        "roofline.peak_dtype": "text", "dtype of the compute peak, e.g. `bf16`";
        "roofline.burst_tflops": "number, 10¹² operations/s",
            "short-term compute peak, which no correct kernel exceeds";
        "roofline.peak_gbps": "number, 10⁹ bytes/s", "peak of memory or cache";
    };
}
