//! Input and output dtypes that operators support.

use crate::{Spec, ZooError};
use calorimeter_recipes::{Dtype, Element};

pub(super) const F32: Element = Element::Float(Dtype::F32);
pub(super) const F16: Element = Element::Float(Dtype::F16);
pub(super) const BF16: Element = Element::Float(Dtype::Bf16);

/// Float dtypes of models.
pub(super) const FLOATS: &[Element] = &[F32, F16, BF16];

/// Returns an error if the input or output dtype of the spec is not in the given lists. Without `outputs`, the output
/// dtype must not be set.
pub(super) fn check_dtypes(name: &str, spec: &Spec, inputs: &[Element], outputs: &[Element]) -> Result<(), ZooError> {
    let names = |allowed: &[Element]| allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if !inputs.contains(&spec.element) {
        return Err(ZooError::Unsupported(format!("{name} takes {}, not {}", names(inputs), spec.element)));
    }
    match spec.output {
        Some(output) if outputs.is_empty() => {
            Err(ZooError::Unsupported(format!("{name} writes its input dtype; omit the output dtype {output}")))
        }
        Some(output) if !outputs.contains(&output) => {
            Err(ZooError::Unsupported(format!("{name} writes {}, not {output}", names(outputs))))
        }
        _ => Ok(()),
    }
}
