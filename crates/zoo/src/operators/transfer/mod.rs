//! Copies between the memories of host and device.

use super::number_types::{FLOATS, allow};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite};
use crate::{Device, Implementation, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::backend::Backend;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transfer {
    way: Way,
    pinned: bool,
}

/// Where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Way {
    ToDevice,
    ToHost,
    /// Both at once.
    Both,
    /// To the device, then another buffer back.
    InTurn,
}

const MIB: u64 = 1 << 20;

impl Transfer {
    fn numbers(spec: &Spec) -> u64 {
        spec.axis("data_size_mib") * MIB / spec.dtype().bytes()
    }

    fn ways(self) -> u64 {
        1 + u64::from(matches!(self.way, Way::Both | Way::InTurn))
    }
}

impl Operation for Transfer {
    const ABOUT: &'static str = "copy of so many MiB between host and device";
    const SUITE: Suite = Suite::Links;

    fn all() -> Vec<Self> {
        let one = |way, pinned| Self { way, pinned };
        vec![
            one(Way::ToDevice, true),
            one(Way::ToHost, true),
            one(Way::Both, true),
            one(Way::ToDevice, false),
            one(Way::ToHost, false),
            one(Way::Both, false),
            one(Way::InTurn, false),
        ]
    }

    fn name(&self) -> &'static str {
        match (self.way, self.pinned) {
            (Way::ToDevice, true) => "host_to_device",
            (Way::ToHost, true) => "device_to_host",
            (Way::Both, true) => "host_device_both",
            (Way::ToDevice, false) => "pageable_host_to_device",
            (Way::ToHost, false) => "pageable_device_to_host",
            (Way::Both, false) => "pageable_host_device_both",
            (Way::InTurn, _) => "host_device",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        &["data_size_mib"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![Operand::normal(1, Self::numbers(spec), spec.element); self.ways() as usize]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![Slot::new(1, Self::numbers(spec), spec.element); self.ways() as usize]
    }

    fn flops(&self, _: &Spec) -> u64 {
        0
    }

    fn bytes(&self, spec: &Spec) -> u64 {
        self.ways() * spec.axis("data_size_mib") * MIB
    }

    fn products(&self) -> u32 {
        0
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        1
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64> {
        sample.by_elements(|row, col| f64::from(inputs[output].row(row)[col]))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        native_alone(self.name(), implementation, device)
    }

    // `supported` refuses burn.
    fn pass<B: Backend>(&self, _: &Spec, _: Vec<Value<B>>) -> Pass<B> {
        Box::new(Vec::new)
    }

    #[cfg(feature = "cuda")]
    fn native(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: std::sync::Arc<calorimeter_kernels::native::Machine>,
        sets: u32,
    ) -> Result<Box<dyn crate::Workload>, ZooError> {
        super::transfer_native::open(self.way, self.pinned, spec.element, inputs, machine, sets)
    }
}

/// What is not burn's to do answers.
pub fn native_alone(name: &str, implementation: Implementation, device: Device) -> Result<(), String> {
    match (implementation, device) {
        (_, Device::Mock) | (Implementation::Native, Device::Cuda(_)) => Ok(()),
        _ => Err(format!("{name} is measured by `native` on cuda alone, not by `{implementation}` on {device}")),
    }
}
