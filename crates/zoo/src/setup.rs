//! Implementation, device and number of buffer sets of a workload.

use calorimeter_case::{Device, Implementation};

/// Implementation, device and number of buffer sets of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Implementation.
    pub implementation: Implementation,
    /// Device.
    pub device: Device,
    /// Number of buffer sets. Launches rotate through them, so that operands are not cached from the previous launch.
    /// The sets of a model hold the same rows in different order.
    pub sets: u32,
}
