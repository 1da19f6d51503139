//! CUDA quantization kernels by rows and by columns.

use super::Quantization;
use crate::native::NativePass;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, CudaKernel, ScaleSource};
use std::sync::Arc;

impl NativePlanner for Quantization {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (m, n) = (spec.axis("m") as usize, spec.axis("n") as usize);
        let scales = if self.is_static() { ScaleSource::Static } else { ScaleSource::Amax };
        Ok(NativePass::of(match self.is_transposed() {
            true => CudaKernel::quantize_columns(device, scales, m, n)?,
            false => CudaKernel::quantize_rows(device, scales, m, n)?,
        }))
    }
}
