//! Devices of a run, discovered before its workers use them.

use super::RunError;
use super::other_users::{DeviceUsers, check_other_users};
use crate::entries::{Overrides, SelectionError};
use calorimeter_case::Device;
use calorimeter_probe::clock_lock::ClockLocks;
use calorimeter_probe::devices::{self, DiscoveredDevice};
use calorimeter_probe::noise_floor::NoiseFloor;
use calorimeter_probe::platforms;
use std::collections::HashMap;

/// Devices of a run and their other users.
pub(super) struct RunDevices {
    pub all: Vec<DiscoveredDevice>,
    pub in_use: DeviceUsers,
    untimed: bool,
    /// False for untimed runs, which other users cannot disturb.
    checks_users: bool,
}

impl RunDevices {
    /// Discovers devices and their other users, before workers of this run use them.
    pub(super) fn discover(wanted: Vec<Device>, overrides: &Overrides) -> Result<Self, RunError> {
        let all: Result<Vec<_>, _> = wanted.into_iter().map(devices::find_device).collect();
        let all = all.map_err(SelectionError::from)?;
        let untimed = overrides.untimed;
        let mut found =
            Self { all, in_use: DeviceUsers::new(), untimed, checks_users: !untimed || overrides.require_idle };
        for one in found.all.iter().filter(|_| found.checks_users) {
            let others = platforms::for_device(one.device).other_users(one.device, &one.facts());
            found.in_use.extend(check_other_users(one.device, others, overrides.require_idle)?);
        }
        Ok(found)
    }

    /// Returns a device of the run.
    pub(super) fn get(&self, device: Device) -> &DiscoveredDevice {
        let found = self.all.iter().find(|one| one.device == device);
        found.expect("all devices of the plan were discovered")
    }

    /// Locks the clocks, if requested, until the result is dropped.
    pub(super) fn lock_clocks(&self, overrides: &Overrides) -> Result<ClockLocks, RunError> {
        overrides.lock_clocks.map_or(Ok(ClockLocks::default()), |clock| Ok(ClockLocks::acquire(&self.all, clock)?))
    }

    /// Noise floors of the devices; zero if nothing is timed.
    pub(super) fn floors(&self) -> HashMap<Device, NoiseFloor> {
        let floor = |found| if self.untimed { NoiseFloor::default() } else { NoiseFloor::for_device(found) };
        self.all.iter().map(|found| (found.device, floor(found))).collect()
    }

    /// Describes users that appeared during the run and may have disturbed measurements.
    pub(super) fn new_users(&self) -> Vec<String> {
        let is_checked = |found: &&DiscoveredDevice| {
            self.checks_users && self.in_use.iter().all(|(device, _)| *device != found.device)
        };
        let others = |found: &DiscoveredDevice| {
            let others = platforms::for_device(found.device).other_users(found.device, &found.facts());
            check_other_users(found.device, others, false).ok()?
        };
        let mut new: DeviceUsers = self.all.iter().filter(is_checked).filter_map(others).collect();
        new.sort_unstable();
        new.into_iter().map(|(device, others)| format!("{device}, at the end of the run: {others}")).collect()
    }
}
