//! Comparisons with the baseline.

use super::Estimate;
use super::column::{Column, Field, Read};
use super::number::no_number;
use crate::{CaseId, Verdict};
use serde::{Deserialize, Serialize};

/// The comparison with another case, measured in alternation with it or, where power or heat held the device back, each alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speedup {
    /// The id of the case compared with.
    pub vs: CaseId,
    /// How many times faster than that case; below 1 is slower.
    pub ratio: f64,
    /// Lower end of the interval of the ratio.
    #[serde(default, skip_serializing_if = "no_number")]
    pub lo: Option<f64>,
    /// Upper end of the interval of the ratio.
    #[serde(default, skip_serializing_if = "no_number")]
    pub hi: Option<f64>,
    /// The ratio in alternation, at the clock that both cases leave each other, where `ratio` is of each alone.
    #[serde(default, skip_serializing_if = "Estimate::is_absent")]
    pub in_turns: Option<Box<Estimate>>,
    /// `FASTER`, `SLOWER`, `SAME` or `UNCLEAR`, which early journals call `INCONCLUSIVE`.
    pub verdict: Verdict,
    /// A difference within this share of 1 is none.
    #[serde(default, skip_serializing_if = "no_number")]
    pub margin: Option<f64>,
    /// How many rounds would likely decide, where it is inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_needed: Option<u32>,
}

impl Speedup {
    pub(super) fn is_absent(this: &Option<Speedup>) -> bool {
        no_number(&this.as_ref().map(|speedup| speedup.ratio))
    }
}

/// The speed-ups of one recipe in one implementation over all shapes, together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SuiteSpeedup {
    /// The recipe with its sparsity.
    pub recipe: String,
    /// Whose kernels ran.
    pub implementation: String,
    /// Where, in which type and in which regime.
    pub device: String,
    /// The type.
    pub dtype: String,
    /// What the times mean.
    pub regime: String,
    /// How many speed-ups these are.
    pub cases: u64,
    /// Their geometric mean.
    pub ratio: f64,
    /// Lower end of its 95 % interval, absent where the cases are too few for one.
    #[serde(default, skip_serializing_if = "no_number")]
    pub lo: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "no_number")]
    pub hi: Option<f64>,
}

impl Speedup {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "speedup_vs",
            field: "speedup.vs",
            unit: "",
            doc: "the id of the case it was compared with",
            read: Read::Text(|speedup| Some(&*speedup.vs)),
        },
        Column {
            name: "speedup",
            field: "speedup.ratio",
            unit: "",
            doc: "how many times faster; below 1 is slower",
            read: Read::Number(|speedup| Some(speedup.ratio)),
        },
        Column {
            name: "speedup_lo",
            field: "speedup.lo",
            unit: "",
            doc: "lower end of its 95 % interval",
            read: Read::Number(|speedup| speedup.lo),
        },
        Column {
            name: "speedup_hi",
            field: "speedup.hi",
            unit: "",
            doc: "upper end",
            read: Read::Number(|speedup| speedup.hi),
        },
        Column {
            name: "speedup_in_turns",
            field: "speedup.in_turns.median",
            unit: "",
            doc: "the same in turns with that case, where `speedup` is of each alone: see [Power](method.md#power-and-heat)",
            read: Read::Number(|speedup| speedup.in_turns.as_ref().map(|ratio| ratio.median)),
        },
        Column {
            name: "verdict",
            field: "speedup.verdict",
            unit: "",
            doc: "`FASTER`, `SLOWER`, `SAME` or `UNCLEAR`; journals of early versions spell the last one `INCONCLUSIVE`",
            read: Read::Text(|speedup| Some(speedup.verdict.as_str())),
        },
    ];

    /// Its fields that no column shows.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field { name: "speedup.in_turns.lo", kind: "number", doc: "lower end of its 95 % interval" },
        Field { name: "speedup.in_turns.hi", kind: "number", doc: "upper end" },
        Field { name: "speedup.margin", kind: "number", doc: "a difference within this share of 1 is none" },
        Field {
            name: "speedup.rounds_needed",
            kind: "whole number",
            doc: "how many rounds would likely decide, where nothing could be said",
        },
    ];
}
