//! What measures the groups of a run.

use super::Place;
use super::desk::Desk;
use super::found_devices::FoundDevices;
use super::kernels::Lookout;
use crate::devices;
use crate::noise_floor::Floor;
use crate::plan::{Group, Plan, PlannedCase};
use crate::worker::{AssignedCase, Assignment, Executor, WorkerError};
use calorimeter_case::Device;
use calorimeter_timing::Options;
use calorimeter_zoo::Subject;
use std::collections::HashMap;

/// The executor of a run, with what its assignments are made from.
pub struct Crew<'a> {
    pub executor: &'a mut dyn Executor,
    pub lookout: Lookout,
    pub plan: &'a Plan,
    pub place: &'a Place,
    pub devices: &'a FoundDevices,
    pub floors: &'a HashMap<Device, Floor>,
    pub untimed: bool,
}

impl Crew<'_> {
    /// Has a group measured; its records arrive at the desk.
    pub fn measure(&mut self, group: &Group, desk: &mut Desk<'_>) -> Result<(), WorkerError> {
        let entry = self.plan.entry(group);
        let device = self.devices.of(entry.device);
        let mut assignment = self.assignment(group, desk, false);
        self.lookout.look(&mut assignment, device, entry.timeout, &*self.executor, desk.listener)?;
        self.executor.run(&assignment, device, entry.timeout, desk)
    }

    /// What a worker is told of a group: the cases that can run and are still wanted, and whether other devices work
    /// meanwhile.
    pub fn assignment(&self, group: &Group, desk: &Desk<'_>, in_company: bool) -> Assignment {
        let entry = self.plan.entry(group);
        let device = self.devices.of(entry.device);
        let margin = self.floors[&entry.device].margin(entry.timing.margin);
        let is_wanted = |planned: &PlannedCase| planned.supported().is_ok() && desk.wants(planned.id());
        let assigned = |(at, planned): (usize, &PlannedCase)| {
            let case = planned.case();
            let against = group.against(at).map(|at| &group.cases()[at]).filter(|one| is_wanted(one));
            let sets = case.set_bytes().map_or(1, |bytes| devices::sets(device, group.regime(), bytes));
            AssignedCase { case, against: against.map(|one| one.id().clone()), sets, kernels: None }
        };
        let cases = group.cases().iter().enumerate().filter(|(_, planned)| is_wanted(planned));
        Assignment {
            cases: cases.map(assigned).collect(),
            foreign: match entry.subject {
                Subject::Foreign(foreign) => Some(foreign),
                Subject::Model(_) | Subject::Operator(_) => None,
            },
            device: device.facts(),
            folder: Some(self.place.dir.clone()),
            timing: (!self.untimed).then(|| Options { margin, ..entry.timing.clone() }),
            seed: entry.seed,
            mock: entry.mock.clone(),
            in_company,
            is_probe: false,
        }
    }
}
