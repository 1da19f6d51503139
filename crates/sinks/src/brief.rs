//! What summaries need of a record: of a long run a hundredth of what the records hold.

use crate::record_part::RecordPart;
use calorimeter_case::record::{Record, Status};
use calorimeter_case::{Axes, CaseId, Device, Element, Implementation, Mode, Name, Regime};
use serde::{Deserialize, Deserializer};

/// What was measured, how it ended, and its speed-up. It is read from the JSON of a record, where nothing else is looked at.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Brief {
    /// The id of the case.
    pub id: CaseId,
    /// What is done.
    pub mode: Mode,
    /// Which computation.
    pub workload: Name,
    /// Which arithmetic.
    pub recipe: Name,
    /// The sparsity laid over it, if any.
    #[serde(default)]
    pub sparsity: Option<Name>,
    /// Whose kernels ran.
    #[serde(deserialize_with = "Implementation::read_recorded")]
    pub implementation: Implementation,
    /// Where.
    pub device: Device,
    /// The type of its numbers.
    #[serde(rename = "dtype")]
    pub element: Element,
    /// Its sizes.
    pub shape: Axes,
    /// What its time means.
    pub regime: Regime,
    /// How it ended.
    pub status: Status,
    /// Why it is not `ok`.
    #[serde(default)]
    pub reason: Option<String>,
    /// What a reader of the figure should know.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// How many times faster it is than what it is compared with.
    #[serde(default, deserialize_with = "ratio")]
    pub speedup: Option<f64>,
}

fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    struct Ratio {
        ratio: f64,
    }
    Ok(Option::<Ratio>::deserialize(deserializer)?.map(|speedup| speedup.ratio))
}

impl Brief {
    /// The recipe with the sparsity laid over it, e.g. `int8wo+semi-sparse`.
    pub fn variant(&self) -> String {
        calorimeter_case::variant(self.recipe, self.sparsity)
    }
}

impl RecordPart for Brief {
    fn id(&self) -> &CaseId {
        &self.id
    }
}

impl From<&Record> for Brief {
    fn from(Record { case, outcome, speedup, .. }: &Record) -> Self {
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
            warnings: outcome.warnings.clone(),
            speedup: speedup.as_ref().map(|speedup| speedup.ratio),
        }
    }
}
