//! CUDA RMS normalization kernel.

use super::RmsNorm;
use crate::normalize;
use crate::operators::native_plans;
use crate::operators::sequences::size;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, RmsNormSpec};
use std::sync::Arc;

impl NativeOpen for RmsNorm {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let form = RmsNormSpec { gain_is_f32: false, epsilon: normalize::EPSILON as f32 };
        native_plans::rms_norm(&machine, spec, form, size(spec))?.open(self, spec, inputs, machine, sets)
    }
}
