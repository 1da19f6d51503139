//! GEMM on CUDA by cuBLASLt.

use super::Gemm;
use crate::native::{BufferSet, NativePass};
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::CudaDevice;
use calorimeter_recipes::Element;
use std::sync::Arc;

impl NativePlanner for Gemm {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        use calorimeter_kernels::native::{Epilogue, Float8MatmulPlan, Float8Output, LinearSpec, WeightLayout};
        let Element::Float(output) = self.output_element(spec) else {
            return Err(ZooError::Unsupported(format!(
                "`native` writes float outputs, not {}",
                self.output_element(spec)
            )));
        };
        if let Element::Float(dtype) = spec.element {
            let (weight, epilogue) = (WeightLayout::AlongN, Epilogue::None);
            let form = LinearSpec { output, weight, epilogue, ..LinearSpec::plain(dtype) };
            return native_plans::matmul(device, spec, form);
        }
        let output = match self {
            Self::Scaled => Float8Output::Scaled(output),
            Self::Accumulated => Float8Output::ScaledAdded,
            _ => Float8Output::Plain(output),
        };
        // Without promotion to f32, accumulators would err by more than a rounding to bf16 for k in the thousands.
        let mut gemm = Float8MatmulPlan::new(device, native_plans::shape(spec), output)?;
        Ok(NativePass::single(gemm.algorithm(), move |BufferSet { inputs, outputs, .. }| {
            gemm.enqueue(&inputs.iter().collect::<Vec<_>>(), &mut outputs[0])
        }))
    }
}
