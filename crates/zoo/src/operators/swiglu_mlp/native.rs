//! Gated MLP on CUDA: cuBLASLt and an elementwise kernel.

use super::SwigluMlp;
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, CudaKernel, ElementwiseFunction, LinearPlan, LinearShape};
use std::sync::Arc;

impl NativePlanner for SwigluMlp {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (kind, up_shape) = (spec.dtype(), native_plans::shape(spec));
        let LinearShape { m, k, n } = up_shape;
        // Gate and up have equal shapes and share a plan.
        let gate_or_up = LinearPlan::new(device, kind, up_shape)?;
        let silu_mul = CudaKernel::elementwise(device, kind, ElementwiseFunction::SiluMul, m * n)?;
        let down = LinearPlan::new(device, kind, LinearShape { m, k: n, n: k })?;
        Ok(NativePass::new(
            vec![format!("twice {}", gate_or_up.algorithm()), silu_mul.algorithm(), down.algorithm()],
            vec![m * n * kind.width(); 3],
            move |BufferSet { inputs, scratch: between, outputs }| {
                let [x, of_gate, of_up, of_down] = &inputs[..] else { unreachable!("four inputs are declared") };
                let [gate, up, hidden] = &mut between[..] else { unreachable!("three buffers are declared") };
                gate_or_up.enqueue(x, of_gate, gate)?;
                gate_or_up.enqueue(x, of_up, up)?;
                silu_mul.enqueue([&*gate, &*up], [&mut *hidden])?;
                down.enqueue(hidden, of_down, &mut outputs[0])
            },
        ))
    }
}
