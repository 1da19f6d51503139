//! Trait of all inspections.

use super::finding::{Facet, Finding};
use crate::worker::arm::{Arm, Job};
use crate::worker::event::{SeenKernels, Stage};
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::{Case, Record};
use calorimeter_timing::{Failure, Stopwatch};

/// Inspection of measured cases, which produces one facet per record. Inspections are independent of each other, so
/// that their order does not matter.
pub trait Inspection {
    /// True if the case requests the inspection.
    fn wanted(&self, case: &Case, assignment: &Assignment) -> bool;

    /// Stage that progress shows meanwhile.
    fn stage(&self) -> Stage {
        Stage::Profile
    }

    /// True if the inspection opens cases again and requires that all other workloads are closed.
    fn alone(&self) -> bool {
        false
    }

    /// Inspects a case.
    fn look(&mut self, subject: &mut Subject<'_>, group: &mut Scene<'_>) -> Result<Option<Facet>, Failure>;

    /// Releases device resources before other cases are timed.
    fn pause(&mut self) {}

    /// Beginning of the warning if the inspection of a case fails.
    fn lacking(&self) -> &'static str;

    /// Findings from comparing cases with each other, after all were inspected.
    fn compare(&self, _: &[Arm], _: &Assignment) -> Vec<Finding> {
        Vec::new()
    }
}

/// Measured case under inspection. It is launched again; its record is read-only.
pub struct Subject<'a> {
    /// Workload to launch.
    pub job: &'a mut Job,
    /// Stopwatch of its times.
    pub stopwatch: &'a mut dyn Stopwatch,
    /// Record of the measurement.
    pub record: &'a Record,
    /// Kernels traced by another worker.
    pub kernels: Option<&'a SeenKernels>,
    /// Remarks for the reader of the result.
    pub remarks: Vec<String>,
}

impl<'a> From<&'a mut Arm> for Subject<'a> {
    fn from(arm: &'a mut Arm) -> Self {
        let Arm { job, stopwatch, record, assigned, .. } = arm;
        Self { job, stopwatch: stopwatch.as_mut(), record, kernels: assigned.kernels.as_ref(), remarks: Vec::new() }
    }
}
