//! CUDA quantization kernels by rows and by columns.

use super::Quantization;
use crate::native::{BufferSet, NativePass};
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::CudaDevice;
use std::sync::Arc;

impl NativeOpen for Quantization {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        use calorimeter_kernels::native::{QuantizePlan, ScaleSource};
        let (m, n) = (spec.axis("m") as usize, spec.axis("n") as usize);
        let scales = if self.is_static() { ScaleSource::Static } else { ScaleSource::Amax };
        let pass = if self.is_transposed() {
            let plan = QuantizePlan::columns(&machine, scales, m, n)?;
            NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
                let [codes, scales] = outputs.as_mut_slice() else { unreachable!("two outputs") };
                plan.enqueue(&inputs[0], codes, scales)
            })
        } else {
            let plan = QuantizePlan::rows(&machine, scales, m, n)?;
            NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
                let [codes, scales] = outputs.as_mut_slice() else { unreachable!("two outputs") };
                plan.enqueue(&inputs[0], codes, scales)
            })
        };
        pass.open(self, spec, inputs, machine, sets)
    }
}
