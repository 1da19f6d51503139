//! Trait of all inspections.

use super::finding::{Facet, InspectionFinding};
use crate::worker::arm::CaseArm;
use crate::worker::event::Stage;
use crate::worker::group_context::GroupContext;
use crate::worker::protocol::{AssignedCase, Assignment};
use calorimeter_case::{Case, Record, Warning};
use calorimeter_probe::TimedWorkload;
use calorimeter_timing::{Failure, Stopwatch};

/// Inspection of measured cases, which produces one facet per record. Inspections are independent of each other, so
/// that their order does not matter.
pub(crate) trait Inspection {
    /// True if the case requests the inspection.
    fn applies_to(&self, case: &Case, assignment: &Assignment) -> bool;

    /// True if the inspection observes memory or launches of this process, which external implementations do not use.
    fn observes_this_process(&self) -> bool {
        false
    }

    /// Stage that progress shows meanwhile.
    fn stage(&self) -> Stage {
        Stage::Profile
    }

    /// True if the inspection opens cases again and requires that all other workloads are closed.
    fn needs_closed_workloads(&self) -> bool {
        false
    }

    /// Inspects a case.
    fn inspect(
        &mut self,
        subject: &mut InspectedCase<'_>,
        group: &mut GroupContext<'_>,
    ) -> Result<Option<Facet>, Failure>;

    /// Releases device resources before other cases are timed.
    fn release(&mut self) {}

    /// Warning if the inspection of a case fails.
    fn failure_warning(&self, error: &Failure) -> Warning;

    /// Findings from comparing cases with each other, after all were inspected.
    fn compare(&self, _: &[CaseArm], _: &Assignment) -> Vec<InspectionFinding> {
        Vec::new()
    }
}

/// Measured case under inspection. It is launched again; its record is read-only.
pub(crate) struct InspectedCase<'a> {
    /// Workload to launch.
    pub job: &'a mut TimedWorkload,
    /// Stopwatch of its times.
    pub stopwatch: &'a mut dyn Stopwatch,
    /// Record of the measurement.
    pub record: &'a Record,
    /// Assignment of the case.
    pub assigned: &'a AssignedCase,
    /// Warnings for the reader of the record.
    pub warnings: Vec<Warning>,
}

impl<'a> From<&'a mut CaseArm> for InspectedCase<'a> {
    fn from(arm: &'a mut CaseArm) -> Self {
        let CaseArm { job, stopwatch, record, assigned, .. } = arm;
        Self { job, stopwatch: stopwatch.as_mut(), record, assigned, warnings: Vec::new() }
    }
}
