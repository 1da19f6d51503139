//! Devices of a run, discovered before its workers use them.

use super::RunError;
use super::idle::{InUse, who_else};
use crate::clock_lock::Locks;
use crate::devices::{self, DiscoveredDevice};
use crate::entries::Overrides;
use crate::noise_floor::Floor;
use crate::platforms;
use calorimeter_case::Device;
use std::collections::HashMap;

/// Devices of a run and their other users.
pub struct FoundDevices {
    pub all: Vec<DiscoveredDevice>,
    pub in_use: InUse,
    untimed: bool,
    /// False for untimed runs, which other users cannot disturb.
    asks_who_else: bool,
}

impl FoundDevices {
    /// Discovers devices and their other users, before workers of this run use them.
    pub fn look(wanted: Vec<Device>, overrides: &Overrides) -> Result<Self, RunError> {
        let all = wanted.into_iter().map(devices::present).collect::<Result<Vec<DiscoveredDevice>, _>>()?;
        let untimed = overrides.untimed;
        let mut found = Self { all, in_use: InUse::new(), untimed, asks_who_else: !untimed || overrides.require_idle };
        for one in found.all.iter().filter(|_| found.asks_who_else) {
            let others = platforms::of(one.device).others(one.device, &one.facts());
            found.in_use.extend(who_else(one.device, others, overrides.require_idle)?);
        }
        Ok(found)
    }

    /// Returns a device of the run.
    pub fn of(&self, device: Device) -> &DiscoveredDevice {
        let found = self.all.iter().find(|one| one.device == device);
        found.expect("all devices of the plan were discovered")
    }

    /// Locks the clocks, if requested, until the result is dropped.
    pub fn lock_clocks(&self, overrides: &Overrides) -> Result<Locks, RunError> {
        overrides.lock_clocks.map_or(Ok(Locks::default()), |clock| Ok(Locks::hold(&self.all, clock)?))
    }

    /// Noise floors of the devices; zero if nothing is timed.
    pub fn floors(&self) -> HashMap<Device, Floor> {
        let floor = |found| if self.untimed { Floor::default() } else { Floor::of(found) };
        self.all.iter().map(|found| (found.device, floor(found))).collect()
    }

    /// Describes users that appeared during the run and may have disturbed measurements.
    pub fn newcomers(&self) -> Vec<String> {
        let is_checked = |found: &&DiscoveredDevice| {
            self.asks_who_else && self.in_use.iter().all(|(device, _)| *device != found.device)
        };
        let others = |found: &DiscoveredDevice| {
            let others = platforms::of(found.device).others(found.device, &found.facts());
            who_else(found.device, others, false).ok()?
        };
        let mut new: InUse = self.all.iter().filter(is_checked).filter_map(others).collect();
        new.sort_unstable();
        new.into_iter().map(|(device, others)| format!("{device}, at the end of the run: {others}")).collect()
    }
}
