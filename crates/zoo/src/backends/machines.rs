//! Handles to devices.

use crate::Device;

/// Handles to devices that workloads of one process share.
#[derive(Default)]
pub struct Machines {
    #[cfg(feature = "cuda")]
    pub(super) native: super::cuda::Natives,
}

impl Machines {
    /// Bytes that are free on a device, where it can be asked.
    pub fn free_memory(&mut self, device: Device) -> Option<u64> {
        super::driver_of(device)?.free_memory(device, self)
    }

    /// Why nothing can run on a device in this process any more, if that is so.
    pub fn broken(&self, device: Device) -> Option<String> {
        super::driver_of(device)?.broken(device, self)
    }
}
