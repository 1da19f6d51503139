//! CUDA kernels for RMS normalization and its gradients.

use super::{EPSILON, FlaxRmsNorm};
use crate::native::{BufferSet, NativePass};
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, CudaKernel, ResidualGradient, RmsNormGradientPlan, RmsNormSpec};
use std::sync::Arc;

impl NativePlanner for FlaxRmsNorm {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (m, n) = (spec.axis("m") as usize, spec.axis("n") as usize);
        let form = RmsNormSpec { gain_is_f32: true, epsilon: EPSILON as f32 };
        Ok(match self {
            Self::Forward | Self::Inference => NativePass::of(CudaKernel::rms_norm(device, spec.dtype(), form, m, n)?),
            Self::Backward => {
                let mut plan = RmsNormGradientPlan::new(device, spec.dtype(), form, ResidualGradient::None, (m, n))?;
                NativePass::single(plan.algorithm(), move |BufferSet { inputs, outputs, .. }| {
                    let [dx, dweight] = outputs.as_mut_slice() else { unreachable!("two outputs are declared") };
                    plan.enqueue([&inputs[0], &inputs[1], &inputs[2]], None, dx, dweight)
                })
            }
        })
    }
}
