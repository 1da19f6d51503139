//! What an inspection is.

use crate::worker::arm::Arm;
use crate::worker::event::Stage;
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::Case;
use calorimeter_timing::Failure;

/// A look at measured cases, which fills one facet of each one's record. None depends on what another found.
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
    fn look(&mut self, arm: &mut Arm, scene: &mut Scene<'_>) -> Result<(), Failure>;

    /// What a case lacks that could not be looked at: the beginning of a warning.
    fn lacking(&self) -> &'static str;

    /// What follows for cases that are compared with each other, once all were looked at.
    fn compare(&mut self, _: &mut [Arm], _: &Assignment) {}
}
