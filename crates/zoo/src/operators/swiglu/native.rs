//! CUDA elementwise kernel for silu(gate) * up.

use super::Swiglu;
use crate::native::NativePass;
use crate::operators::native_plans;
use crate::operators::sequences::element_count;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, ElementwiseFunction};
use std::sync::Arc;

impl NativePlanner for Swiglu {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        native_plans::elementwise(device, spec, ElementwiseFunction::SiluMul, element_count(spec))
    }
}
