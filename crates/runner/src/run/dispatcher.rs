//! Dispatch of groups to the executor.

use super::OutputDirs;
use super::host_memory::{HostMemoryBudget, host_bytes};
use super::kernel_tracer::KernelTracer;
use super::record_writer::RecordWriter;
use super::run_devices::RunDevices;
use crate::plan::{Group, Plan, PlannedCase};
use crate::worker::{AssignedCase, Assignment, AssignmentPurpose, Executor, WorkerError};
use calorimeter_case::{Clock, Device};
use calorimeter_probe::noise_floor::NoiseFloor;
use calorimeter_probe::{devices, platforms};
use calorimeter_timing::Options;
use calorimeter_zoo::Subject;
use std::collections::HashMap;

/// Executor of a run, with the data from which assignments are built.
pub(super) struct Dispatcher<'a> {
    pub executor: &'a mut dyn Executor,
    pub kernel_tracer: KernelTracer,
    pub plan: &'a Plan,
    pub output_dirs: &'a OutputDirs,
    pub devices: &'a RunDevices,
    pub floors: &'a HashMap<Device, NoiseFloor>,
    pub untimed: bool,
}

impl Dispatcher<'_> {
    /// Measures a group and lets the worker prefetch the next one; records go to the record writer.
    pub(super) fn dispatch(
        &mut self,
        group: &Group,
        next: Option<&Group>,
        writer: &mut RecordWriter<'_>,
    ) -> Result<(), WorkerError> {
        let entry = self.plan.entry(group);
        let device = self.devices.get(entry.device);
        let mut assignment =
            Assignment { next: self.next_group(group, next, writer), ..self.assignment(group, writer, false) };
        self.kernel_tracer.trace(&mut assignment, device, entry.timeout, &*self.executor, writer)?;
        self.executor.run(&assignment, device, entry.timeout, writer)
    }

    /// Builds the assignment of a group: its supported cases that still need a measurement.
    pub(super) fn assignment(&self, group: &Group, writer: &RecordWriter<'_>, concurrent: bool) -> Assignment {
        let entry = self.plan.entry(group);
        let device = self.devices.get(entry.device);
        let margin = self.floors[&entry.device].margin(entry.timing.margin);
        let is_needed = |planned: &&PlannedCase| writer.needs_measurement(planned.id());
        let assigned = |(at, planned): (usize, &PlannedCase)| {
            if !is_needed(&planned) {
                return None;
            }
            let spec = planned.spec()?;
            let case = planned.case();
            let against = group.baseline_of(at).map(|at| &group.cases()[at]).filter(is_needed);
            let sets =
                case.buffer_set_bytes().map_or(1, |bytes| devices::buffer_set_count(device, group.regime(), bytes));
            Some(AssignedCase { case, spec, baseline: against.map(|one| one.id().clone()), sets, kernels: None })
        };
        Assignment {
            cases: group.cases().iter().enumerate().filter_map(assigned).collect(),
            device: device.facts(),
            run_dir: Some(self.output_dirs.dir.clone()),
            purpose: if self.untimed {
                AssignmentPurpose::Check
            } else {
                AssignmentPurpose::Measure(Options { margin, ..entry.timing.clone() })
            },
            mock: entry.mock.clone(),
            concurrent_devices: concurrent,
            next: Vec::new(),
        }
    }

    /// Returns the cases whose inputs may be prefetched. Empty if the timed work involves the processor, or if both
    /// groups do not fit into host memory.
    pub(super) fn next_group(
        &self,
        group: &Group,
        next: Option<&Group>,
        writer: &RecordWriter<'_>,
    ) -> Vec<AssignedCase> {
        let (entry, Some(next)) = (self.plan.entry(group), next) else { return Vec::new() };
        let (device, upcoming) = (self.devices.get(entry.device), self.plan.entry(next));
        let platform = platforms::for_device(entry.device);
        let is_independent = !platform.is_synchronous() && !platform.is_simulated() && !device.software;
        let is_built_in = !matches!(upcoming.subject, Subject::Foreign(_));
        let need = |group| host_bytes(group, self.plan, self.devices);
        if self.untimed
            || !is_independent
            || !is_built_in
            || group.regime().clock() != Clock::Device
            || !HostMemoryBudget::available().fits(need(next), &[need(group)])
        {
            return Vec::new();
        }
        self.assignment(next, writer, false).cases
    }
}
