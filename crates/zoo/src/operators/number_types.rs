//! Which types of numbers an operator reads and writes.

use crate::{Spec, ZooError};
use calorimeter_recipes::{Dtype, Element};

pub(super) const F32: Element = Element::Float(Dtype::F32);
pub(super) const F16: Element = Element::Float(Dtype::F16);
pub(super) const BF16: Element = Element::Float(Dtype::Bf16);

/// The types of models.
pub(super) const FLOATS: &[Element] = &[F32, F16, BF16];

/// Refuses inputs and outputs that are stored as none of these.
pub(super) fn allow(name: &str, spec: &Spec, inputs: &[Element], outputs: &[Element]) -> Result<(), ZooError> {
    let names = |allowed: &[Element]| allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if !inputs.contains(&spec.element) {
        return Err(ZooError::Unsupported(format!("{name} takes {}, not {}", names(inputs), spec.element)));
    }
    match spec.output {
        Some(output) if outputs.is_empty() => {
            Err(ZooError::Unsupported(format!("{name} writes the type that it reads; leave {output} out")))
        }
        Some(output) if !outputs.contains(&output) => {
            Err(ZooError::Unsupported(format!("{name} writes {}, not {output}", names(outputs))))
        }
        _ => Ok(()),
    }
}
