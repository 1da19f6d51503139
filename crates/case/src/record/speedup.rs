//! Comparisons with the baseline.

use super::Estimate;
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
