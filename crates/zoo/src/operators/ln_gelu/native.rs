//! CUDA layer normalization kernel with a GELU epilogue.

use super::LnGelu;
use crate::native::NativePass;
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{AffineNormVariant, CudaDevice};
use std::sync::Arc;

impl NativePlanner for LnGelu {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        native_plans::layer_norm(device, spec, AffineNormVariant::WithGelu)
    }
}
