//! GEMM on CUDA by cuBLASLt.

use super::Gemm;
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::operators::native_plans::shape;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::CudaDevice;
use calorimeter_recipes::Element;
use std::sync::Arc;

impl NativeOpen for Gemm {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        use calorimeter_kernels::native::{Epilogue, Float8MatmulPlan, Float8Output, LinearSpec, WeightLayout};
        let Element::Float(output) = self.output_element(spec) else {
            return Err(ZooError::Unsupported(format!(
                "`native` writes float outputs, not {}",
                self.output_element(spec)
            )));
        };
        let pass = if let Element::Float(dtype) = spec.element {
            let (weight, epilogue) = (WeightLayout::AlongN, Epilogue::None);
            native_plans::matmul(&machine, spec, LinearSpec { output, weight, epilogue, ..LinearSpec::plain(dtype) })?
        } else {
            let shape = shape(spec);
            let output = match self {
                Self::Scaled => Float8Output::Scaled(output),
                Self::Accumulated => Float8Output::ScaledAdded,
                _ => Float8Output::Plain(output),
            };
            // Without promotion to f32, accumulators would err by more than a rounding to bf16 for k in the thousands.
            let mut product = Float8MatmulPlan::new(&machine, shape, output)?;
            NativePass::single(product.algorithm(), move |BufferSet { inputs, outputs, .. }| {
                product.enqueue(&inputs.iter().collect::<Vec<_>>(), &mut outputs[0])
            })
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}
