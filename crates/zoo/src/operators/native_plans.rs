//! Native CUDA passes that several operators share.

use super::sequences;
use crate::native::{BufferSet, NativePass};
use crate::{Spec, ZooError, normalize};
use calorimeter_kernels::native::{
    AffineNormVariant, CudaDevice, CudaKernel, ElementwiseFunction, LinearPlan, LinearShape, LinearSpec,
};
use std::sync::Arc;

/// Elementwise function of all inputs, in their dtype.
pub(super) fn elementwise(
    device: &CudaDevice,
    spec: &Spec,
    function: ElementwiseFunction,
    length: u64,
) -> Result<NativePass, ZooError> {
    Ok(NativePass::of(CudaKernel::elementwise(device, spec.dtype(), function, length as usize)?))
}

/// Layer normalization of rows with gain and bias, with a fused residual or activation given by `form`.
pub(super) fn layer_norm(device: &CudaDevice, spec: &Spec, form: AffineNormVariant) -> Result<NativePass, ZooError> {
    let (rows, columns) = sequences::size(spec);
    let size = (rows as usize, columns as usize);
    let epsilon = normalize::EPSILON as f32;
    Ok(NativePass::of(CudaKernel::layer_norm_affine(device, spec.dtype(), form, epsilon, size)?))
}

/// Matmul of inputs 0 and 1.
pub(super) fn matmul(device: &Arc<CudaDevice>, spec: &Spec, form: LinearSpec) -> Result<NativePass, ZooError> {
    let plan = LinearPlan::with_spec(device, form, shape(spec))?;
    Ok(NativePass::single(plan.algorithm(), move |BufferSet { inputs, outputs, .. }| {
        plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
    }))
}

/// Axes m, k and n of the spec.
pub(super) fn shape(spec: &Spec) -> LinearShape {
    let [m, k, n] = ["m", "k", "n"].map(|axis| spec.axis(axis) as usize);
    LinearShape { m, k, n }
}
