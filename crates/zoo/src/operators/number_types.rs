//! Which types of numbers an operator reads and writes.

use crate::operator::{Spec, burn_alone};
use crate::{Device, Implementation, Operation, ZooError, value};
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

/// What an operator answers that has no kernel of ours and may have numbers that burn has no tensors of.
pub(super) fn burn_alone_if_stored<O: Operation>(
    operation: &O,
    spec: &Spec,
    implementation: Implementation,
    device: Device,
) -> Result<(), String> {
    burn_alone(operation.name(), implementation, device)?;
    let read = operation.inputs(spec).into_iter().map(|operand| operand.element);
    let written = operation.outputs(spec).into_iter().map(|slot| slot.element);
    match read.chain(written).find_map(|element| value::stored(element).err()) {
        Some(reason) if device != Device::Mock => Err(format!("{reason}; e4m3 is the smallest that it stores")),
        _ => Ok(()),
    }
}
