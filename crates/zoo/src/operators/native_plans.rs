//! Native CUDA passes that several operators share.

use super::sequences;
use crate::native::{BufferSet, NativePass};
use crate::{Spec, ZooError, normalize};
use calorimeter_kernels::native::{
    AffineLayerNormPlan, AffineNormVariant, CudaDevice, ElementwiseFunction, ElementwisePlan, LinearPlan, LinearShape,
    LinearSpec, PairReduction, PairReductionPlan, RmsNormPlan, RmsNormSpec,
};
use std::sync::Arc;

/// Elementwise function of all inputs, in their dtype.
pub fn elementwise(
    device: &Arc<CudaDevice>,
    spec: &Spec,
    function: ElementwiseFunction,
    length: u64,
) -> Result<NativePass, ZooError> {
    let plan = ElementwisePlan::new(device, spec.dtype(), function, length as usize)?;
    Ok(NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
        plan.enqueue(&inputs.iter().collect::<Vec<_>>(), &mut outputs[0])
    }))
}

/// Reduction of two inputs to one value.
pub fn pair_reduction(
    device: &Arc<CudaDevice>,
    spec: &Spec,
    function: PairReduction,
    length: u64,
) -> Result<NativePass, ZooError> {
    let mut plan = PairReductionPlan::new(device, spec.dtype(), function, length as usize)?;
    Ok(NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
        plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
    }))
}

/// RMS normalization of the rows of input 0, with input 1 as gain.
pub fn rms_norm(
    device: &Arc<CudaDevice>,
    spec: &Spec,
    form: RmsNormSpec,
    (rows, columns): (u64, u64),
) -> Result<NativePass, ZooError> {
    let plan = RmsNormPlan::new(device, spec.dtype(), form, rows as usize, columns as usize)?;
    Ok(NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
        plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
    }))
}

/// Layer normalization of rows with gain and bias, with a fused residual or activation given by `form`.
pub fn layer_norm(device: &Arc<CudaDevice>, spec: &Spec, form: AffineNormVariant) -> Result<NativePass, ZooError> {
    let (rows, columns) = sequences::size(spec);
    let size = (rows as usize, columns as usize);
    let plan = AffineLayerNormPlan::new(device, spec.dtype(), form, normalize::EPSILON as f32, size)?;
    Ok(NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
        plan.enqueue(inputs, outputs)
    }))
}

/// Matmul of inputs 0 and 1.
pub fn matmul(device: &Arc<CudaDevice>, spec: &Spec, form: LinearSpec) -> Result<NativePass, ZooError> {
    let plan = LinearPlan::with_spec(device, form, shape(spec))?;
    Ok(NativePass::single(plan.algorithm(), move |BufferSet { inputs, outputs, .. }| {
        plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
    }))
}

/// Axes m, k and n of the spec.
pub fn shape(spec: &Spec) -> LinearShape {
    let [m, k, n] = ["m", "k", "n"].map(|axis| spec.axis(axis) as usize);
    LinearShape { m, k, n }
}
