//! CUDA elementwise kernel.

use super::Elementwise;
use crate::native::NativePass;
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, ElementwiseFunction};
use std::sync::Arc;

impl NativePlanner for Elementwise {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let function = match self {
            Self::TrainingAdd | Self::Add => ElementwiseFunction::Add,
            Self::SiluMul => ElementwiseFunction::SiluMul,
            Self::Sigmoid => ElementwiseFunction::Sigmoid,
        };
        native_plans::elementwise(device, spec, function, spec.axis("m") * spec.axis("n"))
    }
}
