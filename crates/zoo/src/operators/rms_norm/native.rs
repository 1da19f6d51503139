//! CUDA RMS normalization kernel.

use super::RmsNorm;
use crate::native::NativePass;
use crate::normalize;
use crate::operators::sequences::size;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, CudaKernel, RmsNormSpec};
use std::sync::Arc;

impl NativePlanner for RmsNorm {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let form = RmsNormSpec { gain_is_f32: false, epsilon: normalize::EPSILON as f32 };
        let (rows, columns) = size(spec);
        Ok(NativePass::of(CudaKernel::rms_norm(device, spec.dtype(), form, rows as usize, columns as usize)?))
    }
}
