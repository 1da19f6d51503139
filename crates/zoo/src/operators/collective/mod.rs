//! What several GPUs do together.

use super::number_types::{FLOATS, allow};
use super::transfer::native_alone;
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite};
use crate::{Device, Implementation, Matrix, Operand, Pass, Sample, Slot, Value, ZooError};
use burn::tensor::backend::Backend;

/// One of them. Inputs and outputs are matrices with a row for each device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collective {
    /// `all_reduce`: each gets the sum of all.
    AllReduce,
    /// `psum`: the same.
    Psum,
    /// `all_gather`: each gets all, one after the other.
    AllGather,
    /// `reduce_scatter`: each gets its part of the sum.
    ReduceScatter,
    /// `psum_scatter`: the same, of matrices of another form.
    PsumScatter,
    /// `all_to_all`: each gets its part of each.
    AllToAll,
    /// `send_recv`: each gets what the one before it has.
    SendRecv,
}

impl Collective {
    fn devices(spec: &Spec) -> u64 {
        spec.axis("devices")
    }

    /// Elements that each device has at first.
    fn elements(self, spec: &Spec) -> u64 {
        match self {
            Self::SendRecv => spec.axis("num_elements"),
            Self::PsumScatter => spec.axis("matrix_dim") * 256 * Self::devices(spec),
            _ => spec.axis("matrix_dim") * 8 * 128,
        }
    }

    /// Elements that each device has in the end.
    fn received(self, spec: &Spec) -> u64 {
        let (elements, devices) = (self.elements(spec), Self::devices(spec));
        match self {
            Self::AllGather => elements * devices,
            Self::ReduceScatter | Self::PsumScatter => elements / devices,
            Self::AllReduce | Self::Psum | Self::AllToAll | Self::SendRecv => elements,
        }
    }

    fn adds(self) -> bool {
        matches!(self, Self::AllReduce | Self::Psum | Self::ReduceScatter | Self::PsumScatter)
    }
}

impl Operation for Collective {
    const ABOUT: &'static str = "exchange between the GPUs of one host, matrix_dim or num_elements on each";
    const SUITE: Suite = Suite::Links;

    fn all() -> Vec<Self> {
        use Collective::*;
        vec![AllReduce, Psum, AllGather, ReduceScatter, PsumScatter, AllToAll, SendRecv]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::Psum => "psum",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::PsumScatter => "psum_scatter",
            Self::AllToAll => "all_to_all",
            Self::SendRecv => "send_recv",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        match self {
            Self::SendRecv => &["num_elements", "devices"],
            _ => &["matrix_dim", "devices"],
        }
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let (elements, devices) = (self.elements(spec), Self::devices(spec));
        if devices < 2 {
            return Err(ZooError::Shape(format!("{} is between at least 2 devices, not {devices}", self.name())));
        }
        let in_parts = matches!(self, Self::ReduceScatter | Self::AllToAll);
        if in_parts && !elements.is_multiple_of(devices) {
            let why =
                format!("{} shares {elements} elements among {devices} devices evenly, or not at all", self.name());
            return Err(ZooError::Shape(why));
        }
        allow(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![Operand::normal(Self::devices(spec), self.elements(spec), spec.element)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![Slot::new(Self::devices(spec), self.received(spec), spec.element)]
    }

    fn flops(&self, spec: &Spec) -> u64 {
        if self.adds() { (Self::devices(spec) - 1) * self.elements(spec) } else { 0 }
    }

    /// What the link of each device must carry in one direction, whatever the algorithm. What accelerator-microbenchmarks
    /// counts depends on the cores of TPU chips in a group, so nothing is published for GPUs.
    fn bytes(&self, spec: &Spec) -> u64 {
        let devices = Self::devices(spec);
        let all = self.elements(spec) * spec.dtype().bytes();
        match self {
            Self::AllReduce | Self::Psum => 2 * all * (devices - 1) / devices,
            Self::AllGather => all * (devices - 1),
            Self::ReduceScatter | Self::PsumScatter | Self::AllToAll => all * (devices - 1) / devices,
            Self::SendRecv => all,
        }
    }

    fn products(&self) -> u32 {
        0
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        Self::devices(spec)
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let (elements, devices) = (self.elements(spec) as usize, Self::devices(spec) as usize);
        let part = elements / devices;
        let at = |device: usize, element: usize| f64::from(inputs[0].row(device)[element]);
        let sum = |element: usize| (0..devices).map(|device| at(device, element)).sum();
        sample.by_elements(|device, element| match self {
            Self::AllReduce | Self::Psum => sum(element),
            Self::AllGather => at(element / elements, element % elements),
            Self::ReduceScatter | Self::PsumScatter => sum(device * part + element),
            Self::AllToAll => at(element / part, device * part + element % part),
            Self::SendRecv => at((device + devices - 1) % devices, element),
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        // Each step of a sum is rounded to the type that is sent.
        let roundings = if self.adds() { (Self::devices(spec) - 1).min(u64::from(u32::MAX)) as u32 } else { 1 };
        Tolerance::new(spec.dtype(), roundings, Self::devices(spec))
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
        use calorimeter_kernels::native::Collective as Call;
        let call = match self {
            Self::AllReduce | Self::Psum => Call::AllReduce,
            Self::AllGather => Call::AllGather,
            Self::ReduceScatter | Self::PsumScatter => Call::ReduceScatter,
            Self::AllToAll => Call::AllToAll,
            Self::SendRecv => Call::SendReceive,
        };
        super::collective_native::open(call, spec, &inputs[0], machine, sets)
    }
}
