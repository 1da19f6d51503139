//! CUDA pair reduction kernel.

use super::MseLoss;
use crate::native::NativePass;
use crate::operators::sequences::element_count;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, CudaKernel, PairReduction};
use std::sync::Arc;

impl NativePlanner for MseLoss {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (function, length) = (PairReduction::MeanSquaredDifference, element_count(spec) as usize);
        Ok(NativePass::of(CudaKernel::pair_reduction(device, spec.dtype(), function, length)?))
    }
}
