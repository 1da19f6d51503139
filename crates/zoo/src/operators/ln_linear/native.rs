//! `ln_linear` on CUDA: layer normalization kernel, then cuBLASLt.

use super::LnLinear;
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError, normalize};
use calorimeter_kernels::native::{AffineNormVariant, CudaDevice, CudaKernel, LinearPlan, LinearShape};
use std::sync::Arc;

impl NativePlanner for LnLinear {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (kind, shape) = (spec.dtype(), native_plans::shape(spec));
        let LinearShape { m, k, .. } = shape;
        let norm =
            CudaKernel::layer_norm_affine(device, kind, AffineNormVariant::Plain, normalize::EPSILON as f32, (m, k))?;
        let linear = LinearPlan::new(device, kind, shape)?;
        Ok(NativePass::new(
            vec![norm.algorithm(), linear.algorithm()],
            vec![m * k * kind.width()],
            move |BufferSet { inputs, scratch: between, outputs }| {
                let [.., weight] = &inputs[..] else { unreachable!("four inputs are declared") };
                norm.enqueue(&inputs[..3], &mut *between)?;
                linear.enqueue(&between[0], weight, &mut outputs[0])
            },
        ))
    }
}
