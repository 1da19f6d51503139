//! CUDA layer normalization kernel.

use super::LayerNorm;
use crate::native::NativePass;
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{AffineNormVariant, CudaDevice};
use std::sync::Arc;

impl NativePlanner for LayerNorm {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        native_plans::layer_norm(device, spec, AffineNormVariant::Plain)
    }
}
