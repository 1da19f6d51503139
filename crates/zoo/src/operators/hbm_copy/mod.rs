//! A copy within the device's memory.

use super::number_types::{FLOATS, allow};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_alone};
use crate::{Counts, Device, Implementation, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::backend::Backend;

/// `single_device_hbm_copy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HbmCopy;

impl Operation for HbmCopy {
    const ABOUT: &'static str = "copy of so many elements";
    const SUITE: Suite = Suite::Gemm;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "single_device_hbm_copy"
    }

    fn products(&self) -> u32 {
        0
    }

    fn axes(&self) -> &'static [&'static str] {
        &["num_elements"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![Operand::normal(1, spec.axis("num_elements"), spec.element)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![Slot::new(1, spec.axis("num_elements"), spec.element)]
    }

    fn flops(&self, _: &Spec) -> u64 {
        0
    }

    fn published(&self, spec: &Spec) -> Option<Counts> {
        Some(Counts { flops: None, bytes: Some(2 * spec.dtype().bytes() * spec.axis("num_elements")) })
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        2
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        sample.by_elements(|row, col| f64::from(inputs[0].row(row)[col]))
    }

    // Nothing is computed; the width of one rounding is the least that there is.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match (implementation, device) {
            (Implementation::Native, Device::Cuda(_)) => Ok(()),
            _ => burn_alone(self.name(), implementation, device),
        }
    }

    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let inputs: Vec<_> = inputs.into_iter().map(Value::float).collect();
        // burn has no copy: the value is the same, and so is the traffic.
        Box::new(move || vec![Value::Float(inputs[0].clone().mul_scalar(1.0))])
    }

    #[cfg(feature = "cuda")]
    fn native(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: std::sync::Arc<calorimeter_kernels::native::Machine>,
        sets: u32,
    ) -> Result<Box<dyn crate::Workload>, ZooError> {
        use crate::native_operator::{NativePass, Set};
        // What a framework's copy is, too.
        let copy = |set: &mut Set| set.outputs[0].copy_from(&set.inputs[0]);
        NativePass::single("a copy by the driver".into(), copy).open(self, spec, inputs, machine, sets)
    }
}
