//! Comparisons with the baseline.

use super::Estimate;
use super::column::{Column, Field, columns, fields};
use super::number::is_not_finite;
use crate::{CaseId, Verdict};
use serde::{Deserialize, Serialize};

/// Comparison with another case: measured interleaved with it or, if the device was throttled, both in isolation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speedup {
    /// Id of the reference case.
    pub vs: CaseId,
    /// Speed-up over the reference case; below 1 is slower.
    pub ratio: f64,
    /// Lower end of the 95 % interval of the ratio.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub lo: Option<f64>,
    /// Upper end of the 95 % interval of the ratio.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub hi: Option<f64>,
    /// Interleaved ratio, at the clock that results from both cases, if `ratio` is from isolated times.
    #[serde(default, skip_serializing_if = "Estimate::is_absent")]
    pub in_turns: Option<Box<Estimate>>,
    /// `FASTER`, `SLOWER`, `SAME` or `UNCLEAR`, which early journals call `INCONCLUSIVE`.
    pub verdict: Verdict,
    /// Differences within this share of 1 are ignored.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub margin: Option<f64>,
    /// Estimated number of rounds for a decision, if the verdict is unclear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_needed: Option<u32>,
}

impl Speedup {
    pub(super) fn is_absent(this: &Option<Speedup>) -> bool {
        is_not_finite(&this.as_ref().map(|speedup| speedup.ratio))
    }
}

/// Mean speed-up of one recipe in one implementation over all shapes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuiteSpeedup {
    /// Recipe with its sparsity.
    pub recipe: String,
    /// Implementation.
    pub implementation: String,
    /// Device.
    pub device: String,
    /// Dtype.
    pub dtype: String,
    /// Timing mode.
    pub regime: String,
    /// Number of speed-ups.
    pub cases: u64,
    /// Geometric mean.
    pub ratio: f64,
    /// Lower end of the 95 % interval, absent for too few cases.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub lo: Option<f64>,
    /// Upper end of the interval.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub hi: Option<f64>,
}

impl Speedup {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |speedup|
        "speedup_vs" from "speedup.vs": Text(Some(&*speedup.vs)), "id of the reference case";
        "speedup" from "speedup.ratio": Number(Some(speedup.ratio)), "speed-up; below 1 is slower";
        "speedup_lo" from "speedup.lo": Number(speedup.lo), "lower end of the 95 % interval of `speedup`";
        "speedup_hi" from "speedup.hi": Number(speedup.hi), "upper end of the 95 % interval of `speedup`";
        "speedup_in_turns" from "speedup.in_turns.median": Number(speedup.in_turns.as_ref().map(|ratio| ratio.median)),
            "interleaved speed-up, if `speedup` is from isolated times: see [Power](method.md#power-and-heat)";
        "verdict" from "speedup.verdict": Text(Some(speedup.verdict.as_str())),
            "`FASTER`, `SLOWER`, `SAME` or `UNCLEAR`; journals of early versions spell the last one `INCONCLUSIVE`";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "speedup.in_turns.lo": "number", "lower end of the 95 % interval of the interleaved speed-up";
        "speedup.in_turns.hi": "number", "upper end of the 95 % interval of the interleaved speed-up";
        "speedup.margin": "number", "differences within this share of 1 are ignored";
        "speedup.rounds_needed": "whole number", "estimated number of rounds for a decision, if the verdict is unclear";
    };
}
