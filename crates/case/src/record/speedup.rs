//! Comparisons with the baseline.

use super::Estimate;
use super::column::{CellReader, Column, Field};
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
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "speedup_vs",
            field: "speedup.vs",
            unit: "",
            doc: "id of the reference case",
            read: CellReader::Text(|speedup| Some(&*speedup.vs)),
        },
        Column {
            name: "speedup",
            field: "speedup.ratio",
            unit: "",
            doc: "speed-up; below 1 is slower",
            read: CellReader::Number(|speedup| Some(speedup.ratio)),
        },
        Column {
            name: "speedup_lo",
            field: "speedup.lo",
            unit: "",
            doc: "lower end of the 95 % interval of `speedup`",
            read: CellReader::Number(|speedup| speedup.lo),
        },
        Column {
            name: "speedup_hi",
            field: "speedup.hi",
            unit: "",
            doc: "upper end of the 95 % interval of `speedup`",
            read: CellReader::Number(|speedup| speedup.hi),
        },
        Column {
            name: "speedup_in_turns",
            field: "speedup.in_turns.median",
            unit: "",
            doc: "interleaved speed-up, if `speedup` is from isolated times: see [Power](method.md#power-and-heat)",
            read: CellReader::Number(|speedup| speedup.in_turns.as_ref().map(|ratio| ratio.median)),
        },
        Column {
            name: "verdict",
            field: "speedup.verdict",
            unit: "",
            doc: "`FASTER`, `SLOWER`, `SAME` or `UNCLEAR`; journals of early versions spell the last one `INCONCLUSIVE`",
            read: CellReader::Text(|speedup| Some(speedup.verdict.as_str())),
        },
    ];

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field {
            name: "speedup.in_turns.lo",
            kind: "number",
            doc: "lower end of the 95 % interval of the interleaved speed-up",
        },
        Field {
            name: "speedup.in_turns.hi",
            kind: "number",
            doc: "upper end of the 95 % interval of the interleaved speed-up",
        },
        Field { name: "speedup.margin", kind: "number", doc: "differences within this share of 1 are ignored" },
        Field {
            name: "speedup.rounds_needed",
            kind: "whole number",
            doc: "estimated number of rounds for a decision, if the verdict is unclear",
        },
    ];
}
