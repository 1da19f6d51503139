//! By CUDA's libraries and kernels of ours.

use super::{GemmQuantised, Scaling, Shared};
use crate::native::{NativePass, Set};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::Machine;
use calorimeter_recipes::Dtype;
use std::sync::Arc;

impl NativeOpen for GemmQuantised {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        use calorimeter_kernels::native::{Float8Linear, Float8Output, Float8Sums, Quantise, ScaleSource};
        let output = match self.0 {
            Shared::Line => Float8Output::Plain(Dtype::Bf16),
            Shared::LineDequantised => Float8Output::Scaled(Dtype::Bf16),
            Shared::Block | Shared::Micro => unreachable!("registered without `native`"),
        };
        let source = match self.1 {
            Scaling::Dynamic => ScaleSource::Largest,
            Scaling::Static => ScaleSource::Static,
        };
        let shape = native_plans::shape(spec);
        let rows = Quantise::rows(&machine, source, shape.m, shape.k)?;
        let columns = Quantise::columns(&machine, source, shape.k, shape.n)?;
        let linear = Float8Linear::new(&machine, shape, output, Float8Sums::Promoted)?;
        let pass = NativePass::steps(
            vec![rows.algorithm().into(), columns.algorithm().into(), linear.algorithm()],
            vec![rows.codes_bytes(), columns.codes_bytes(), rows.scales_bytes(), columns.scales_bytes()],
            move |Set { inputs, between, outputs }| {
                let [a, b, scales_of_a, scales_of_b] = between.as_mut_slice() else { unreachable!("four buffers") };
                rows.enqueue(&inputs[0], a, scales_of_a)?;
                columns.enqueue(&inputs[1], b, scales_of_b)?;
                let factors = [&*a, b, scales_of_a, scales_of_b];
                linear.enqueue(&factors[..output.inputs()], &mut outputs[0])
            },
        );
        pass.open(self, spec, inputs, machine, sets)
    }
}
