//! CUDA quantization kernels by rows and by columns.

use super::Quantization;
use crate::native::{BufferSet, NativePass};
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::CudaDevice;
use std::sync::Arc;

impl NativePlanner for Quantization {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        use calorimeter_kernels::native::{QuantizePlan, ScaleSource};
        let (m, n) = (spec.axis("m") as usize, spec.axis("n") as usize);
        let scales = if self.is_static() { ScaleSource::Static } else { ScaleSource::Amax };
        let plan = match self.is_transposed() {
            true => QuantizePlan::columns(device, scales, m, n)?,
            false => QuantizePlan::rows(device, scales, m, n)?,
        };
        Ok(NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
            let [values, scales] = outputs.as_mut_slice() else { unreachable!("two outputs") };
            plan.enqueue(&inputs[0], values, scales)
        }))
    }
}
