//! Copies between host and device memory, pinned or pageable.
//!
//! `data_size_mib` is the size per direction; `bytes` counts each copy once.

#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::operators::number_types::{FLOATS, allow};
use crate::operators::presets::{Preset, grid};
use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};
use calorimeter_shapes::Axes;

/// Copy operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transfer {
    way: Way,
    pinned: bool,
}

/// Direction of the copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Way {
    ToDevice,
    ToHost,
    /// Both directions concurrently.
    Both,
    /// To the device, then another buffer to the host.
    InTurn,
}

const MIB: u64 = 1 << 20;

impl Transfer {
    /// All copy operators.
    pub const ALL: [Self; 7] = [
        Self { way: Way::ToDevice, pinned: true },
        Self { way: Way::ToHost, pinned: true },
        Self { way: Way::Both, pinned: true },
        Self { way: Way::ToDevice, pinned: false },
        Self { way: Way::ToHost, pinned: false },
        Self { way: Way::Both, pinned: false },
        Self { way: Way::InTurn, pinned: false },
    ];

    fn numbers(spec: &Spec) -> u64 {
        spec.axis("data_size_mib") * MIB / spec.dtype().bytes()
    }

    fn ways(self) -> u64 {
        1 + u64::from(matches!(self.way, Way::Both | Way::InTurn))
    }
}

/// Registers the copy operators with their implementation.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(Transfer::ALL).native();
}

impl Signature for Transfer {
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

    fn about(&self) -> &'static str {
        "copy of data_size_mib MiB between host and device"
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
}

impl Cost for Transfer {
    fn flops(&self, _: &Spec) -> u64 {
        0
    }

    fn bytes(&self, spec: &Spec) -> u64 {
        self.ways() * spec.axis("data_size_mib") * MIB
    }
}

impl Operation for Transfer {
    fn suite(&self) -> Suite {
        Suite::Links
    }

    fn is_link(&self) -> bool {
        true
    }

    // The GEMM suite also lists transfers between memories and devices.
    fn is_listed_in(&self, suite: Suite) -> bool {
        [Suite::Links, Suite::Gemm].contains(&suite)
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        let sizes: &[u64] = match preset {
            Preset::Quick => &[1, 16],
            Preset::Guide | Preset::Llm => &[64, 1024],
            Preset::Full => &[1, 4, 16, 64, 256, 1024],
        };
        grid(&[("data_size_mib", sizes)])
    }
}
