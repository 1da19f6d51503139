//! CUDA attention kernel; scores stay on chip.

use super::{Attention, Size};
use crate::native::{NativePass, Set};
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{self, AttentionForm, Machine};
use std::sync::Arc;

impl NativeOpen for Attention {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let Size { batch, heads, sequence, width } = Size::of(self.form, spec);
        let form = AttentionForm {
            heads: (batch * heads) as usize,
            positions: sequence as usize,
            width: width as usize,
            causal: self.causal,
        };
        let plan = native::Attention::new(&machine, spec.dtype(), form)?;
        NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
            plan.enqueue(&inputs[0], &inputs[1], &inputs[2], &mut outputs[0])
        })
        .open(self, spec, inputs, machine, sets)
    }
}
