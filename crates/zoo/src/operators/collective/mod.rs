//! Collective operations among the GPUs of one host, through NCCL.
//!
//! Inputs and outputs are matrices with one row per device. `bytes` counts traffic per link and direction.

#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::dtypes::{FLOATS, check_dtypes};
use crate::operators::presets::{Preset, grid};
use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite, ZooError};
use calorimeter_shapes::Axes;

/// Collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Collective {
    /// `all_reduce`: every device receives the sum over devices.
    AllReduce,
    /// `psum`: all-reduce under its JAX name.
    Psum,
    /// `all_gather`: every device receives the concatenation over devices.
    AllGather,
    /// `reduce_scatter`: device i receives part i of the sum.
    ReduceScatter,
    /// `psum_scatter`: reduce-scatter of matrix_dim * 256 * devices elements per device.
    PsumScatter,
    /// `all_to_all`: device i receives part i of every device.
    AllToAll,
    /// `send_recv`: every device receives the data of the previous device in a ring.
    SendRecv,
}

impl Collective {
    /// All collectives.
    pub const ALL: [Self; 7] = [
        Self::AllReduce,
        Self::Psum,
        Self::AllGather,
        Self::ReduceScatter,
        Self::PsumScatter,
        Self::AllToAll,
        Self::SendRecv,
    ];

    fn devices(spec: &Spec) -> u64 {
        spec.axis("devices")
    }

    /// Input elements per device.
    fn input_elements(self, spec: &Spec) -> u64 {
        match self {
            Self::SendRecv => spec.axis("num_elements"),
            Self::PsumScatter => spec.axis("matrix_dim") * 256 * Self::devices(spec),
            _ => spec.axis("matrix_dim") * 8 * 128,
        }
    }

    /// Output elements per device.
    fn output_elements(self, spec: &Spec) -> u64 {
        let (elements, devices) = (self.input_elements(spec), Self::devices(spec));
        match self {
            Self::AllGather => elements * devices,
            Self::ReduceScatter | Self::PsumScatter => elements / devices,
            Self::AllReduce | Self::Psum | Self::AllToAll | Self::SendRecv => elements,
        }
    }

    fn is_reduction(self) -> bool {
        matches!(self, Self::AllReduce | Self::Psum | Self::ReduceScatter | Self::PsumScatter)
    }
}

/// Registers the collectives with their implementation.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(Collective::ALL).native();
}

impl Signature for Collective {
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

    fn description(&self) -> &'static str {
        "collective among the GPUs of one host, matrix_dim or num_elements per GPU"
    }

    fn axes(&self) -> &'static [&'static str] {
        match self {
            Self::SendRecv => &["num_elements", "devices"],
            _ => &["matrix_dim", "devices"],
        }
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let (elements, devices) = (self.input_elements(spec), Self::devices(spec));
        if devices < 2 {
            return Err(ZooError::Shape(format!("{}: devices is {devices}; expected at least 2", self.name())));
        }
        let in_parts = matches!(self, Self::ReduceScatter | Self::AllToAll);
        if in_parts && !elements.is_multiple_of(devices) {
            let why = format!("{}: {elements} elements do not divide evenly among {devices} devices", self.name());
            return Err(ZooError::Shape(why));
        }
        check_dtypes(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![Operand::normal(Self::devices(spec), self.input_elements(spec), spec.element)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![OutputSlot::new(Self::devices(spec), self.output_elements(spec), spec.element)]
    }
}

impl Cost for Collective {
    fn flops(&self, spec: &Spec) -> u64 {
        if self.is_reduction() { (Self::devices(spec) - 1) * self.input_elements(spec) } else { 0 }
    }

    // Minimum bytes that the link of each device carries in one direction, for any algorithm.
    fn bytes(&self, spec: &Spec) -> u64 {
        let devices = Self::devices(spec);
        let all = self.input_elements(spec) * spec.dtype().bytes();
        match self {
            Self::AllReduce | Self::Psum => 2 * all * (devices - 1) / devices,
            Self::AllGather => all * (devices - 1),
            Self::ReduceScatter | Self::PsumScatter | Self::AllToAll => all * (devices - 1) / devices,
            Self::SendRecv => all,
        }
    }
}

impl Operation for Collective {
    fn suite(&self) -> Suite {
        Suite::Links
    }

    fn is_transfer(&self) -> bool {
        true
    }

    // Outputs rotate with the devices (rows) or with the elements of each device (columns).
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        let (devices, elements) = (Self::devices(spec), self.input_elements(spec));
        let (parts, input, output) = match self {
            Self::AllReduce | Self::Psum => (elements, RotationAxis::Columns, RotationAxis::Columns),
            Self::AllGather | Self::AllToAll => (devices, RotationAxis::Rows, RotationAxis::Columns),
            Self::ReduceScatter | Self::PsumScatter => (devices, RotationAxis::Columns, RotationAxis::Rows),
            Self::SendRecv => (devices, RotationAxis::Rows, RotationAxis::Rows),
        };
        SetRotation::new(parts, &[input], &[output])
    }

    // The GEMM suite also lists transfers between memories and devices.
    fn is_listed_in(&self, suite: Suite) -> bool {
        [Suite::Links, Suite::Gemm].contains(&suite)
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        let (axis, unit) = match self {
            Self::SendRecv => ("num_elements", 1024),
            // matrix_dim counts blocks of elements, not single ones.
            _ => ("matrix_dim", 1),
        };
        let sizes: &[u64] = match preset {
            Preset::Quick => &[64],
            Preset::Guide | Preset::Llm => &[1024, 16384],
            Preset::Full => &[1, 16, 64, 256, 1024, 4096, 16384],
        };
        let sizes: Vec<u64> = sizes.iter().map(|size| size * unit).collect();
        grid(&[(axis, &sizes), ("devices", &[2])])
    }
}
