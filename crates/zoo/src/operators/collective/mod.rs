//! What several GPUs do together.

#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::operators::number_types::{FLOATS, allow};
use crate::operators::presets::{Preset, grid};
use crate::registry::table::Zoo;
use crate::{Along, Cost, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};
use calorimeter_shapes::Axes;

/// One of them. Inputs and outputs are matrices with a row for each device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
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
    /// Every one.
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

/// Registers them with the ways to run them.
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

    fn about(&self) -> &'static str {
        "exchange between the GPUs of one host, matrix_dim or num_elements on each"
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
}

impl Cost for Collective {
    fn flops(&self, spec: &Spec) -> u64 {
        if self.adds() { (Self::devices(spec) - 1) * self.elements(spec) } else { 0 }
    }

    // What the link of each device must carry in one direction, whatever the algorithm.
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
}

impl Operation for Collective {
    fn suite(&self) -> Suite {
        Suite::Links
    }

    fn is_link(&self) -> bool {
        true
    }

    // What each gets moves with what the devices have, or with where in it they have it.
    fn moves(&self, spec: &Spec) -> Moves {
        let (devices, elements) = (Self::devices(spec), self.elements(spec));
        let (parts, input, output) = match self {
            Self::AllReduce | Self::Psum => (elements, Along::Columns, Along::Columns),
            Self::AllGather | Self::AllToAll => (devices, Along::Rows, Along::Columns),
            Self::ReduceScatter | Self::PsumScatter => (devices, Along::Columns, Along::Rows),
            Self::SendRecv => (devices, Along::Rows, Along::Rows),
        };
        Moves::new(parts, &[input], &[output])
    }

    // The GEMM suite shows what is between memories and devices, too.
    fn is_listed_in(&self, suite: Suite) -> bool {
        [Suite::Links, Suite::Gemm].contains(&suite)
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        let (axis, unit) = match self {
            Self::SendRecv => ("num_elements", 1024),
            // A step is so many elements.
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
