//! CUDA kernels for RMS normalization and its gradients.

use super::{EPSILON, FlaxRmsNorm};
use crate::native::{NativePass, Set};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{Machine, Past, RmsForm, RmsNormGradient};
use std::sync::Arc;

impl NativeOpen for FlaxRmsNorm {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        let epsilon = EPSILON as f32;
        let pass = match self {
            Self::Forward | Self::Inference => {
                native_plans::rms_norm(&machine, spec, RmsForm { gain_is_f32: true, epsilon }, (m, n))?
            }
            Self::Backward => {
                let (form, size) = (RmsForm { gain_is_f32: true, epsilon }, (m as usize, n as usize));
                let mut plan = RmsNormGradient::new(&machine, spec.dtype(), form, Past::Nothing, size)?;
                NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
                    let [dx, dweight] = outputs.as_mut_slice() else { unreachable!("two outputs are declared") };
                    plan.enqueue([&inputs[0], &inputs[1], &inputs[2]], None, dx, dweight)
                })
            }
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}
