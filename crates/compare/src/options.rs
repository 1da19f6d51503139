//! Options of a comparison.

use calorimeter_case::Device;
use std::collections::BTreeMap;

/// Options of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// Largest deviation from 1 that counts as no difference.
    pub margin: f64,
    /// Compares runs that are not comparable as well; the result lists the reasons.
    pub force: bool,
    /// Noise floor of each device, if known: the deviation from 1 between two processes that measure the same code. It
    /// raises the margin if each side is a single process.
    pub noise_floors: BTreeMap<Device, f64>,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { margin: 0.02, force: false, noise_floors: BTreeMap::new() }
    }
}
