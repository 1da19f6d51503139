//! Excerpt of a record for summaries: about one percent of the memory of the record.

use crate::record_part::RecordPart;
use calorimeter_case::record::{Record, Speedup, Status, Warning};
use calorimeter_case::{Axes, CaseId, Device, Element, Implementation, Mode, Name, Regime, Verdict};
use serde::Deserialize;

/// Case, outcome and speed-up of a record. Deserialized from the JSON of a record, ignoring its other fields.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CaseExcerpt {
    /// Case id.
    pub id: CaseId,
    /// Mode.
    pub mode: Mode,
    /// Model or operator.
    pub workload: Name,
    /// Recipe.
    pub recipe: Name,
    /// Sparsity, if any.
    #[serde(default)]
    pub sparsity: Option<Name>,
    /// Implementation.
    #[serde(deserialize_with = "Implementation::read_recorded")]
    pub implementation: Implementation,
    /// Device.
    pub device: Device,
    /// Element type.
    #[serde(rename = "dtype")]
    pub element: Element,
    /// Sizes.
    pub shape: Axes,
    /// Regime.
    pub regime: Regime,
    /// Status.
    pub status: Status,
    /// Reason for a status other than `ok`.
    #[serde(default)]
    pub reason: Option<String>,
    /// Warnings.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Speed-up over the baseline.
    #[serde(default)]
    pub speedup: Option<SpeedupExcerpt>,
}

/// Speed-up with its 95 % interval and verdict.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct SpeedupExcerpt {
    /// Speed-up.
    pub ratio: f64,
    /// Lower end of the interval.
    #[serde(default)]
    pub lo: Option<f64>,
    /// Upper end of the interval.
    #[serde(default)]
    pub hi: Option<f64>,
    /// Verdict.
    pub verdict: Verdict,
}

impl From<&Speedup> for SpeedupExcerpt {
    fn from(&Speedup { ratio, lo, hi, verdict, .. }: &Speedup) -> Self {
        Self { ratio, lo, hi, verdict }
    }
}

impl CaseExcerpt {
    /// Recipe with sparsity, e.g. `int8wo+semi-sparse`.
    pub fn variant(&self) -> String {
        calorimeter_case::variant(self.recipe, self.sparsity)
    }
}

impl RecordPart for CaseExcerpt {
    fn id(&self) -> &CaseId {
        &self.id
    }
}

impl From<&Record> for CaseExcerpt {
    fn from(Record { case, outcome, warnings, speedup, .. }: &Record) -> Self {
        Self {
            id: case.id.clone(),
            mode: case.mode,
            workload: case.workload,
            recipe: case.recipe,
            sparsity: case.sparsity,
            implementation: case.implementation,
            device: case.device,
            element: case.element,
            shape: case.shape.clone(),
            regime: case.regime,
            status: outcome.status,
            reason: outcome.reason.clone(),
            warnings: warnings.iter().map(Warning::to_string).collect(),
            speedup: speedup.as_ref().map(SpeedupExcerpt::from),
        }
    }
}
