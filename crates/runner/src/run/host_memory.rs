//! Host memory budget for preparing groups of several devices concurrently.

use super::run_devices::RunDevices;
use crate::plan::{Group, Plan};
use calorimeter_probe::host::available_memory;
use calorimeter_probe::platforms;

/// Host memory of a case during preparation, as a multiple of its device memory: inputs in f32, a reference in f64, and
/// packed weights.
const HOST_COPIES: u64 = 4;
/// Usable percentage of the memory that is free at the start; other processes need the remainder.
const USABLE_PERCENT: u64 = 80;

/// Available host memory in bytes; `None` if unknown.
pub(super) struct HostMemoryBudget(Option<u64>);

impl HostMemoryBudget {
    /// Measures the available memory; unlimited if the system does not report it.
    pub(super) fn available() -> Self {
        Self(available_memory().map(|free| free / 100 * USABLE_PERCENT))
    }

    /// True if one more group fits next to the active ones. A single group is always allowed.
    pub(super) fn fits(&self, need: u64, at_work: &[u64]) -> bool {
        let all = at_work.iter().fold(need, |all, one| all.saturating_add(*one));
        at_work.is_empty() || self.0.is_none_or(|budget| all <= budget)
    }
}

/// Approximate host memory of a group during preparation: the maximum over its cases, which are prepared one after the
/// other.
pub(super) fn host_bytes(group: &Group, plan: &Plan, devices: &RunDevices) -> u64 {
    let device = devices.get(plan.entry(group).device);
    if platforms::for_device(device.device).memory().is_none() {
        return 0;
    }
    let runs = group.cases().iter().filter(|case| case.supported().is_ok());
    runs.filter_map(|case| case.case().memory_bytes).max().unwrap_or(0).saturating_mul(HOST_COPIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_groups_are_not_prepared_concurrently() {
        let room = HostMemoryBudget(Some(100));
        assert!(room.fits(40, &[60]) && !room.fits(41, &[60]) && !room.fits(1, &[60, 40]));
        assert!(room.fits(1000, &[]), "a single group");
        assert!(HostMemoryBudget(None).fits(u64::MAX, &[u64::MAX]), "unknown memory");
    }
}
