//! By CUDA's libraries and kernels of ours.

use super::Gemm;
use crate::native::{NativePass, Set};
use crate::operators::native_plans;
use crate::operators::native_plans::shape;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::Machine;
use calorimeter_recipes::Element;
use std::sync::Arc;

impl NativeOpen for Gemm {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        use calorimeter_kernels::native::{
            Buffer, Epilogue, Float8Linear, Float8Output, Float8Sums, LinearForm, TransposeBytes, WeightLayout,
        };
        let Element::Float(output) = self.output(spec) else {
            return Err(ZooError::Unsupported(format!("`native` multiplies to floats, not {}", self.output(spec))));
        };
        let pass = if let Element::Float(dtype) = spec.element {
            let (weight, epilogue) = (WeightLayout::AlongN, Epilogue::Nothing);
            native_plans::product(&machine, spec, LinearForm { output, weight, epilogue, ..LinearForm::plain(dtype) })?
        } else {
            let shape = shape(spec);
            let output = match self {
                Self::Scaled => Float8Output::Scaled(output),
                Self::Accumulated => Float8Output::Added,
                _ => Float8Output::Plain(output),
            };
            // cuBLASLt takes only codes that run along k: B is turned in every pass. Sums that are not promoted would be
            // off by more than a rounding to bf16 where k is in the thousands.
            let turn = TransposeBytes::new(&machine, shape.k, shape.n)?;
            let linear = Float8Linear::new(&machine, shape, output, Float8Sums::Promoted)?;
            NativePass::steps(
                vec![turn.algorithm().into(), linear.algorithm()],
                vec![turn.bytes()],
                move |Set { inputs, between, outputs }| {
                    turn.enqueue(&inputs[1], &mut between[0])?;
                    let mut factors: Vec<&Buffer> = inputs.iter().collect();
                    factors[1] = &between[0];
                    linear.enqueue(&factors, &mut outputs[0])
                },
            )
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}
