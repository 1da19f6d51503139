//! How a problem is run.

use calorimeter_case::{Device, Implementation};

/// How a problem is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Whose kernels run.
    pub implementation: Implementation,
    /// Where.
    pub device: Device,
    /// Buffer sets that launches go through in turn, so that no cache holds what the next one reads. Those of a model hold
    /// the same rows in another order each.
    pub sets: u32,
}
