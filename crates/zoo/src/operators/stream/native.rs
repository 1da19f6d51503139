//! STREAM on CUDA by the elementwise kernel.

use super::{FACTOR, Stream};
use crate::native::NativePass;
use crate::operators::native_plans;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::CudaDevice;
use calorimeter_recipes::FloatType;
use std::sync::Arc;

impl NativePlanner for Stream {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        use calorimeter_kernels::native::ElementwiseFunction as Function;
        let function = match self {
            Self::Copy => Function::Copy,
            Self::Scale => Function::Scale(spec.dtype().round(FACTOR)),
            Self::Add => Function::Add,
            Self::Triad => Function::Triad(spec.dtype().round(FACTOR)),
        };
        native_plans::elementwise(device, spec, function, spec.axis("elements"))
    }
}
