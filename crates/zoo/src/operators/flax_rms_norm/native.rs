//! CUDA kernels for RMS normalization and its gradients.

use super::{EPSILON, FlaxRmsNorm};
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, ResidualGradient, RmsNormGradientPlan, RmsNormSpec};
use std::sync::Arc;

impl NativeOpen for FlaxRmsNorm {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let epsilon = EPSILON as f32;
        let pass = match self {
            Self::Forward | Self::Inference => {
                native_plans::rms_norm(&machine, spec, RmsNormSpec { gain_is_f32: true, epsilon }, (m, n))?
            }
            Self::Backward => {
                let (form, size) = (RmsNormSpec { gain_is_f32: true, epsilon }, (m as usize, n as usize));
                let mut plan = RmsNormGradientPlan::new(&machine, spec.dtype(), form, ResidualGradient::None, size)?;
                NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
                    let [dx, dweight] = outputs.as_mut_slice() else { unreachable!("two outputs are declared") };
                    plan.enqueue([&inputs[0], &inputs[1], &inputs[2]], None, dx, dweight)
                })
            }
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}
