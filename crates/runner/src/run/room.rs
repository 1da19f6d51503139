//! Host memory budget for preparing groups of several devices concurrently.

use super::found_devices::FoundDevices;
use crate::host::available_memory;
use crate::plan::{Group, Plan};
use crate::platforms;

/// Host memory of a case during preparation, as a multiple of its device memory: inputs in f32, a reference in f64, and
/// packed weights.
const COPIES: u64 = 4;
/// Usable percentage of the memory that is free at the start; other processes need the remainder.
const SHARE: u64 = 80;

/// Available host memory in bytes; `None` if unknown.
pub struct Room(Option<u64>);

impl Room {
    /// Measures the available memory; unlimited if the system does not report it.
    pub fn of_host() -> Self {
        Self(available_memory().map(|free| free / 100 * SHARE))
    }

    /// True if one more group fits next to the active ones. A single group is always allowed.
    pub fn admits(&self, need: u64, at_work: &[u64]) -> bool {
        let all = at_work.iter().fold(need, |all, one| all.saturating_add(*one));
        at_work.is_empty() || self.0.is_none_or(|budget| all <= budget)
    }
}

/// Approximate host memory of a group during preparation: the maximum over its cases, which are prepared one after the
/// other.
pub fn need(group: &Group, plan: &Plan, devices: &FoundDevices) -> u64 {
    let device = devices.of(plan.entry(group).device);
    if platforms::of(device.device).is_scripted() {
        return 0;
    }
    let runs = group.cases().iter().filter(|case| case.supported().is_ok());
    runs.filter_map(|case| case.case().memory_bytes).max().unwrap_or(0).saturating_mul(COPIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_large_ones_are_not_prepared_at_once_and_one_always_is() {
        let room = Room(Some(100));
        assert!(room.admits(40, &[60]) && !room.admits(41, &[60]) && !room.admits(1, &[60, 40]));
        assert!(room.admits(1000, &[]), "a single group");
        assert!(Room(None).admits(u64::MAX, &[u64::MAX]), "unknown memory");
    }
}
