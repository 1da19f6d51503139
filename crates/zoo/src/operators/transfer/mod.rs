//! Copies between host and device memory, pinned or pageable.
//!
//! `data_size_mib` is the size per direction; `bytes` counts each copy once.

#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::dtypes::{FLOATS, check_dtypes};
use crate::operators::presets::{Preset, grid};
use crate::registry::table::Zoo;
use crate::{Cost, Operand, Operation, OutputSlot, Signature, Spec, Suite, ZooError};
use calorimeter_shapes::Axes;

/// Copy operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transfer {
    direction: TransferDirection,
    pinned: bool,
}

/// Direction of the copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TransferDirection {
    ToDevice,
    ToHost,
    /// Both directions concurrently.
    Bidirectional,
    /// To the device, then another buffer to the host.
    Sequential,
}

const MIB: u64 = 1 << 20;

impl Transfer {
    /// All copy operators.
    pub const ALL: [Self; 7] = [
        Self { direction: TransferDirection::ToDevice, pinned: true },
        Self { direction: TransferDirection::ToHost, pinned: true },
        Self { direction: TransferDirection::Bidirectional, pinned: true },
        Self { direction: TransferDirection::ToDevice, pinned: false },
        Self { direction: TransferDirection::ToHost, pinned: false },
        Self { direction: TransferDirection::Bidirectional, pinned: false },
        Self { direction: TransferDirection::Sequential, pinned: false },
    ];

    fn element_count(spec: &Spec) -> u64 {
        spec.axis("data_size_mib") * MIB / spec.dtype().bytes()
    }

    fn copy_count(self) -> u64 {
        1 + u64::from(matches!(self.direction, TransferDirection::Bidirectional | TransferDirection::Sequential))
    }
}

/// Registers the copy operators with their implementation.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(Transfer::ALL).native();
}

impl Signature for Transfer {
    fn name(&self) -> &'static str {
        match (self.direction, self.pinned) {
            (TransferDirection::ToDevice, true) => "host_to_device",
            (TransferDirection::ToHost, true) => "device_to_host",
            (TransferDirection::Bidirectional, true) => "host_device_both",
            (TransferDirection::ToDevice, false) => "pageable_host_to_device",
            (TransferDirection::ToHost, false) => "pageable_device_to_host",
            (TransferDirection::Bidirectional, false) => "pageable_host_device_both",
            (TransferDirection::Sequential, _) => "host_device",
        }
    }

    fn description(&self) -> &'static str {
        "copy of data_size_mib MiB between host and device"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["data_size_mib"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        check_dtypes(self.name(), spec, FLOATS, &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![Operand::normal(1, Self::element_count(spec), spec.element); self.copy_count() as usize]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![OutputSlot::new(1, Self::element_count(spec), spec.element); self.copy_count() as usize]
    }
}

impl Cost for Transfer {
    fn flops(&self, _: &Spec) -> u64 {
        0
    }

    fn bytes(&self, spec: &Spec) -> u64 {
        self.copy_count() * spec.axis("data_size_mib") * MIB
    }
}

impl Operation for Transfer {
    fn suite(&self) -> Suite {
        Suite::Links
    }

    fn is_transfer(&self) -> bool {
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
