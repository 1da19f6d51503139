//! CUDA pair reduction kernel.

use super::MseLoss;
use crate::native::NativePass;
use crate::operators::native_plans;
use crate::operators::sequences::element_count;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, PairReduction};
use std::sync::Arc;

impl NativePlanner for MseLoss {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        native_plans::pair_reduction(device, spec, PairReduction::MeanSquaredDifference, element_count(spec))
    }
}
