//! CUDA attention kernel; scores stay on chip.

use super::{Attention, AttentionSize};
use crate::native::{BufferSet, NativePass};
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{self, AttentionSpec, CudaDevice};
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
        let plan = native::AttentionPlan::new(device, spec.dtype(), form)?;
        Ok(NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
            plan.enqueue(&inputs[0], &inputs[1], &inputs[2], &mut outputs[0])
        }))
    }
}
