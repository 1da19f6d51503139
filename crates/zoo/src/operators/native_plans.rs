//! Passes through native kernels that several operators share.

use super::sequences;
use crate::native::{NativePass, Set};
use crate::{Spec, normalize};
use calorimeter_kernels::native::{
    AffineLayerNorm, Elementwise, ElementwiseFunction, Linear, LinearForm, LinearShape, Machine, NativeError, NormForm,
    PairFunction, PairSum, RmsForm, RmsNorm,
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

/// One number of two inputs.
pub fn pair_sum(
    machine: &Arc<Machine>,
    spec: &Spec,
    function: PairFunction,
    length: u64,
) -> Result<NativePass, NativeError> {
    let mut plan = PairSum::new(machine, spec.dtype(), function, length as usize)?;
    Ok(NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
        plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
    }))
}

/// The rows of the first input by their root mean square, with the second as gain.
pub fn rms_norm(
    machine: &Arc<Machine>,
    spec: &Spec,
    form: RmsForm,
    (rows, columns): (u64, u64),
) -> Result<NativePass, NativeError> {
    let plan = RmsNorm::new(machine, spec.dtype(), form, rows as usize, columns as usize)?;
    Ok(NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
        plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
    }))
}

/// The layer normalization of rows with gain and bias, in one of its forms.
pub fn layer_norm(machine: &Arc<Machine>, spec: &Spec, form: NormForm) -> Result<NativePass, NativeError> {
    let (rows, columns) = sequences::size(spec);
    let size = (rows as usize, columns as usize);
    let plan = AffineLayerNorm::new(machine, spec.dtype(), form, normalize::EPSILON as f32, size)?;
    Ok(NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
        plan.enqueue(inputs, outputs)
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
