//! Passes through native kernels that several operators share.

use crate::Spec;
use crate::native::{NativePass, Set};
use calorimeter_kernels::native::{
    Elementwise, ElementwiseFunction, Linear, LinearForm, LinearShape, Machine, NativeError,
};
use std::sync::Arc;

/// All inputs, element by element, in the inputs' type.
pub fn elementwise(
    machine: &Arc<Machine>,
    spec: &Spec,
    function: ElementwiseFunction,
    length: u64,
) -> Result<NativePass, NativeError> {
    let plan = Elementwise::new(machine, spec.dtype(), function, length as usize)?;
    Ok(NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
        plan.enqueue(&inputs.iter().collect::<Vec<_>>(), &mut outputs[0])
    }))
}

/// The first input times the second.
pub fn product(machine: &Arc<Machine>, spec: &Spec, form: LinearForm) -> Result<NativePass, NativeError> {
    let plan = Linear::of(machine, form, shape(spec))?;
    Ok(NativePass::single(plan.algorithm(), move |Set { inputs, outputs, .. }| {
        plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
    }))
}

/// m, k and n.
pub fn shape(spec: &Spec) -> LinearShape {
    let [m, k, n] = ["m", "k", "n"].map(|axis| spec.axis(axis) as usize);
    LinearShape { m, k, n }
}
