//! Gated MLP on CUDA: cuBLASLt and an elementwise kernel.

use super::SwigluMlp;
use crate::native::{NativePass, Set};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{Elementwise, ElementwiseFunction, Linear, LinearShape, Machine};
use std::sync::Arc;

impl NativeOpen for SwigluMlp {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (kind, up_shape) = (spec.dtype(), native_plans::shape(spec));
        let LinearShape { m, k, n } = up_shape;
        // Gate and up have equal shapes and share a plan.
        let gate_or_up = Linear::new(&machine, kind, up_shape)?;
        let silu_mul = Elementwise::new(&machine, kind, ElementwiseFunction::SiluMul, m * n)?;
        let down = Linear::new(&machine, kind, LinearShape { m, k: n, n: k })?;
        let pass = NativePass::steps(
            vec![format!("twice {}", gate_or_up.algorithm()), silu_mul.algorithm().to_owned(), down.algorithm()],
            vec![m * n * kind.width(); 3],
            move |Set { inputs, between, outputs }| {
                let [x, of_gate, of_up, of_down] = &inputs[..] else { unreachable!("four inputs are declared") };
                let [gate, up, hidden] = &mut between[..] else { unreachable!("three buffers are declared") };
                gate_or_up.enqueue(x, of_gate, gate)?;
                gate_or_up.enqueue(x, of_up, up)?;
                silu_mul.enqueue(&[gate, up], hidden)?;
                down.enqueue(hidden, of_down, &mut outputs[0])
            },
        );
        pass.open(self, spec, inputs, machine, sets)
    }
}
