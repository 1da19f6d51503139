//! Dispatch of groups to the executor.

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

/// Executor of a run, with the data from which assignments are built.
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
    /// Measures a group and lets the worker prefetch the next one; records go to the record writer.
    pub fn measure(&mut self, group: &Group, next: Option<&Group>, writer: &mut Desk<'_>) -> Result<(), WorkerError> {
        let entry = self.plan.entry(group);
        let device = self.devices.of(entry.device);
        let mut assignment =
            Assignment { next: self.next(group, next, writer), ..self.assignment(group, writer, false) };
        self.lookout.look(&mut assignment, device, entry.timeout, &*self.executor, writer.listener)?;
        self.executor.run(&assignment, device, entry.timeout, writer)
    }

    /// Builds the assignment of a group: its supported cases that still need a measurement.
    pub fn assignment(&self, group: &Group, writer: &Desk<'_>, concurrent: bool) -> Assignment {
        let entry = self.plan.entry(group);
        let device = self.devices.of(entry.device);
        let margin = self.floors[&entry.device].margin(entry.timing.margin);
        let is_needed = |planned: &PlannedCase| planned.supported().is_ok() && writer.wants(planned.id());
        let assigned = |(at, planned): (usize, &PlannedCase)| {
            let case = planned.case();
            let against = group.against(at).map(|at| &group.cases()[at]).filter(|one| is_needed(one));
            let sets = case.set_bytes().map_or(1, |bytes| devices::sets(device, group.regime(), bytes));
            AssignedCase { case, against: against.map(|one| one.id().clone()), sets, kernels: None }
        };
        let cases = group.cases().iter().enumerate().filter(|(_, planned)| is_needed(planned));
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
            in_company: concurrent,
            is_probe: false,
            next: None,
        }
    }

    /// Returns the group to prefetch. `None` if the timed work involves the processor, or if both groups do not fit
    /// into host memory.
    pub fn next(&self, group: &Group, next: Option<&Group>, writer: &Desk<'_>) -> Option<Next> {
        let (entry, next) = (self.plan.entry(group), next?);
        let (device, upcoming) = (self.devices.of(entry.device), self.plan.entry(next));
        let platform = platforms::of(entry.device);
        let is_independent = !platform.is_synchronous() && !platform.is_scripted() && !device.software;
        let is_built_in = !matches!(upcoming.subject, Subject::Foreign(_));
        let need = |group| need(group, self.plan, self.devices);
        if self.untimed
            || !is_independent
            || !is_built_in
            || group.regime().clock() != Clock::Device
            || !Room::of_host().admits(need(next), &[need(group)])
        {
            return None;
        }
        let Assignment { cases, seed, .. } = self.assignment(next, writer, false);
        Some(Next { cases: cases.into_iter().map(|assigned| assigned.case).collect(), seed })
    }
}
