//! CUDA elementwise kernel for the activations.

use super::ElementwiseActivation;
use crate::native::NativePass;
use crate::operators::native_plans;
use crate::operators::sequences::element_count;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, ElementwiseFunction};
use std::sync::Arc;

impl NativePlanner for ElementwiseActivation {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let function = match self {
            Self::Gelu => ElementwiseFunction::Gelu,
            Self::GeluTanh => ElementwiseFunction::GeluTanh,
            Self::Silu => ElementwiseFunction::Silu,
        };
        native_plans::elementwise(device, spec, function, element_count(spec))
    }
}
