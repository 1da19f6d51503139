//! CUDA kernels for RMS normalization and its gradients.

use super::{EPSILON, FlaxRmsNorm};
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, ResidualGradient, RmsNormGradientPlan, RmsNormSpec};
use std::sync::Arc;

impl NativePlanner for FlaxRmsNorm {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let epsilon = EPSILON as f32;
        Ok(match self {
            Self::Forward | Self::Inference => {
                native_plans::rms_norm(device, spec, RmsNormSpec { gain_is_f32: true, epsilon }, (m, n))?
            }
            Self::Backward => {
                let (form, size) = (RmsNormSpec { gain_is_f32: true, epsilon }, (m as usize, n as usize));
                let mut plan = RmsNormGradientPlan::new(device, spec.dtype(), form, ResidualGradient::None, size)?;
                NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
                    let [dx, dweight] = outputs.as_mut_slice() else { unreachable!("two outputs are declared") };
                    plan.enqueue([&inputs[0], &inputs[1], &inputs[2]], None, dx, dweight)
                })
            }
        })
    }
}
