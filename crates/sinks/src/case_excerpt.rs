//! Excerpt of a record for summaries: about one percent of the memory of the record.

use crate::record_part::RecordPart;
use calorimeter_case::record::{Record, Status, Warning};
use calorimeter_case::{Axes, CaseId, Device, Element, Implementation, Mode, Name, Regime};
use serde::{Deserialize, Deserializer};

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
    #[serde(default, deserialize_with = "ratio")]
    pub speedup: Option<f64>,
}

fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    struct SpeedupRatio {
        ratio: f64,
    }
    Ok(Option::<SpeedupRatio>::deserialize(deserializer)?.map(|speedup| speedup.ratio))
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
            speedup: speedup.as_ref().map(|speedup| speedup.ratio),
        }
    }
}
