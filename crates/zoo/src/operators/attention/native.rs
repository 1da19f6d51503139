//! CUDA attention kernel; scores stay on chip.

use super::{Attention, AttentionSize};
use crate::native::NativePass;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{AttentionSpec, CudaDevice, CudaKernel};
use std::sync::Arc;

impl NativePlanner for Attention {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let AttentionSize { batch, heads, sequence, width } = AttentionSize::new(self.kind, spec);
        let form = AttentionSpec {
            heads: (batch * heads) as usize,
            positions: sequence as usize,
            width: width as usize,
            causal: self.causal,
        };
        Ok(NativePass::of(CudaKernel::attention(device, spec.dtype(), form)?))
    }
}
