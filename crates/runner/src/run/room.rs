//! Whether the host has memory for what several devices are prepared with at the same time.

use super::found_devices::FoundDevices;
use crate::host::available_memory;
use crate::plan::{Group, Plan};
use crate::platforms;

/// What the host holds of a case while it is prepared, as a multiple of what its device needs: inputs in single
/// precision, a reference in double, and what is packed.
const COPIES: u64 = 4;
/// The share of the memory that is free at the beginning, in percent: others use it, too.
const SHARE: u64 = 80;

/// The host's memory.
pub struct Room(Option<u64>);

impl Room {
    /// What there is now; where the system does not tell, as much as is wanted.
    pub fn of_host() -> Self {
        Self(available_memory().map(|free| free / 100 * SHARE))
    }

    /// Whether there is room for one more beside these. What is prepared beside nothing is a matter of its own.
    pub fn admits(&self, need: u64, at_work: &[u64]) -> bool {
        let all = at_work.iter().fold(need, |all, one| all.saturating_add(*one));
        at_work.is_empty() || self.0.is_none_or(|room| all <= room)
    }
}

/// Bytes of the host that a group takes while it is prepared, roughly: one case after the other is.
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
        assert!(room.admits(1000, &[]), "beside nothing");
        assert!(Room(None).admits(u64::MAX, &[u64::MAX]), "where nobody knows");
    }
}
