//! What measures the groups of a run.

use super::Place;
use super::desk::Desk;
use super::found_devices::FoundDevices;
use super::kernels::Lookout;
use super::room::{Room, need};
use crate::devices;
use crate::noise_floor::Floor;
use crate::plan::{Group, Plan, PlannedCase};
use crate::platforms;
use crate::worker::{AssignedCase, Assignment, Executor, Next, WorkerError};
use calorimeter_case::{Clock, Device};
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
    /// Has a group measured, and what its device is likely to measure next prepared; its records arrive at the desk.
    pub fn measure(&mut self, group: &Group, next: Option<&Group>, desk: &mut Desk<'_>) -> Result<(), WorkerError> {
        let entry = self.plan.entry(group);
        let device = self.devices.of(entry.device);
        let mut assignment = Assignment { next: self.next(group, next, desk), ..self.assignment(group, desk, false) };
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
            next: None,
        }
    }

    /// What may be prepared while a group is timed: nothing where the processor is what is timed, or has a part in it, and
    /// nothing that the host has no room for.
    pub fn next(&self, group: &Group, next: Option<&Group>, desk: &Desk<'_>) -> Option<Next> {
        let (entry, next) = (self.plan.entry(group), next?);
        let (device, upcoming) = (self.devices.of(entry.device), self.plan.entry(next));
        let platform = platforms::of(entry.device);
        let by_itself = !platform.is_synchronous() && !platform.is_scripted() && !device.software;
        let ours = !matches!(upcoming.subject, Subject::Foreign(_));
        let need = |group| need(group, self.plan, self.devices);
        if self.untimed
            || !by_itself
            || !ours
            || group.regime().clock() != Clock::Device
            || !Room::of_host().admits(need(next), &[need(group)])
        {
            return None;
        }
        let Assignment { cases, seed, .. } = self.assignment(next, desk, false);
        Some(Next { cases: cases.into_iter().map(|assigned| assigned.case).collect(), seed })
    }
}
