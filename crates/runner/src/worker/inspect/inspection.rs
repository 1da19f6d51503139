//! What an inspection is.

use super::finding::{Facet, Finding};
use crate::worker::arm::{Arm, Job};
use crate::worker::event::{SeenKernels, Stage};
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::{Case, Record};
use calorimeter_timing::{Failure, Stopwatch};

/// A look at measured cases, which finds one facet of each one's record. None sees what another found, so that their order
/// does not matter.
pub trait Inspection {
    /// Whether a case asks for it.
    fn wanted(&self, case: &Case, assignment: &Assignment) -> bool;

    /// What is shown meanwhile.
    fn stage(&self) -> Stage {
        Stage::Profile
    }

    /// Whether it opens cases anew, and no other workload may be open meanwhile.
    fn alone(&self) -> bool {
        false
    }

    /// Looks at a case.
    fn look(&mut self, subject: &mut Subject<'_>, scene: &mut Scene<'_>) -> Result<Option<Facet>, Failure>;

    /// Gives back what it holds of a device, before other cases are timed.
    fn pause(&mut self) {}

    /// What a case lacks that could not be looked at: the beginning of a warning.
    fn lacking(&self) -> &'static str;

    /// What follows for cases that are compared with each other, once all were looked at.
    fn compare(&self, _: &[Arm], _: &Assignment) -> Vec<Finding> {
        Vec::new()
    }
}

/// A measured case as it is looked at: it is launched again, and what is known of it stands.
pub struct Subject<'a> {
    /// What is launched.
    pub job: &'a mut Job,
    /// What its times are read from.
    pub stopwatch: &'a mut dyn Stopwatch,
    /// What is known of it.
    pub record: &'a Record,
    /// The kernels that another worker saw.
    pub kernels: Option<&'a SeenKernels>,
    /// What a reader of what is found should know.
    pub remarks: Vec<String>,
}

impl<'a> From<&'a mut Arm> for Subject<'a> {
    fn from(arm: &'a mut Arm) -> Self {
        let Arm { job, stopwatch, record, assigned, .. } = arm;
        Self { job, stopwatch: stopwatch.as_mut(), record, kernels: assigned.kernels.as_ref(), remarks: Vec::new() }
    }
}
