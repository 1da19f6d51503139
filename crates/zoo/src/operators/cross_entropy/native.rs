//! CUDA cross-entropy kernel.

use super::CrossEntropy;
use crate::native::NativePass;
use crate::operators::sequences::size;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, CudaKernel};
use std::sync::Arc;

impl NativePlanner for CrossEntropy {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (rows, classes) = size(spec);
        Ok(NativePass::of(CudaKernel::cross_entropy(device, spec.dtype(), rows as usize, classes as usize)?))
    }
}
