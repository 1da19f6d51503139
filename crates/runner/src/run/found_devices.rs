//! The devices of a run as they were found before a worker of ours uses them.

use super::RunError;
use super::idle::{InUse, who_else};
use crate::clock_lock::Locks;
use crate::devices::{self, DiscoveredDevice};
use crate::entries::Overrides;
use crate::noise_floor::Floor;
use crate::platforms;
use calorimeter_case::Device;
use std::collections::HashMap;

/// The devices of a run as they were found, and who else used them.
pub struct FoundDevices {
    pub all: Vec<DiscoveredDevice>,
    pub in_use: InUse,
    untimed: bool,
    /// What is not timed is disturbed by nobody.
    asks_who_else: bool,
}

impl FoundDevices {
    /// Looks for devices, and for who uses them: that is asked before a worker of ours does.
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

    /// One of them.
    pub fn of(&self, device: Device) -> &DiscoveredDevice {
        let found = self.all.iter().find(|one| one.device == device);
        found.expect("all devices of the plan were looked for")
    }

    /// The clocks that are locked as long as this is kept.
    pub fn lock_clocks(&self, overrides: &Overrides) -> Result<Locks, RunError> {
        overrides.lock_clocks.map_or(Ok(Locks::default()), |clock| Ok(Locks::hold(&self.all, clock)?))
    }

    /// What was found of their noise; where nothing is timed it does not matter.
    pub fn floors(&self) -> HashMap<Device, Floor> {
        let floor = |found| if self.untimed { Floor::default() } else { Floor::of(found) };
        self.all.iter().map(|found| (found.device, floor(found))).collect()
    }

    /// Who uses a device at the end that nobody else used at the beginning, and may have disturbed what was timed on it.
    pub fn newcomers(&self) -> Vec<String> {
        let is_asked = |found: &&DiscoveredDevice| {
            self.asks_who_else && self.in_use.iter().all(|(device, _)| *device != found.device)
        };
        let others = |found: &DiscoveredDevice| {
            let others = platforms::of(found.device).others(found.device, &found.facts());
            who_else(found.device, others, false).ok()?
        };
        let mut came: InUse = self.all.iter().filter(is_asked).filter_map(others).collect();
        came.sort_unstable();
        came.into_iter().map(|(device, others)| format!("{device}, when the run ended: {others}")).collect()
    }
}
