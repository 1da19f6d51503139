//! CUDA softmax kernel.

use super::Softmax;
use crate::native::NativePass;
use crate::operators::sequences::size;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, CudaKernel};
use std::sync::Arc;

impl NativePlanner for Softmax {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (rows, columns) = size(spec);
        Ok(NativePass::of(CudaKernel::softmax(device, spec.dtype(), rows as usize, columns as usize)?))
    }
}
