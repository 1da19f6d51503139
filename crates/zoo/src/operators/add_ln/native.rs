//! CUDA kernel that adds and normalizes in one pass.

use super::AddLn;
use crate::native::NativePass;
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{AffineNormVariant, CudaDevice};
use std::sync::Arc;

impl NativePlanner for AddLn {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        native_plans::layer_norm(device, spec, AffineNormVariant::WithResidual)
    }
}
