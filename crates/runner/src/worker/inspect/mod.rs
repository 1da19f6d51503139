//! What is looked at after a case was timed, outside of any window. An inspection is a file and its line in [`inspections`].

mod fusion;
mod launches;
mod memory;
mod trace;
mod traffic;

use super::arm::Arm;
use super::event::Stage;
use super::group::Scene;
use super::poison::{Poisoned, guarded};
use super::protocol::Assignment;
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

/// Every inspection.
fn inspections() -> Vec<Box<dyn Inspection>> {
    vec![
        Box::new(launches::SingleLaunches),
        Box::new(trace::Tracing),
        Box::<traffic::Counting>::default(),
        Box::<memory::Following>::default(),
        Box::new(fusion::Telling),
    ]
}

/// Looks at what was measured. A case that cannot be looked at says so in its warnings; those that must be alone come
/// last, when every workload is closed.
pub fn inspect(arms: &mut [Arm], scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    let (alone, beside): (Vec<_>, Vec<_>) = inspections().into_iter().partition(|inspection| inspection.alone());
    for mut inspection in beside {
        apply(inspection.as_mut(), arms, scene)?;
    }
    arms.iter_mut().for_each(|arm| arm.job.close());
    for mut inspection in alone {
        apply(inspection.as_mut(), arms, scene)?;
    }
    Ok(())
}

fn apply(inspection: &mut dyn Inspection, arms: &mut [Arm], scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    for arm in arms.iter_mut() {
        if scene.listener.interrupted() {
            return Ok(());
        }
        if !arm.record.is_ok() || !inspection.wanted(&arm.record.case, scene.assignment) {
            continue;
        }
        let id = arm.record.case.id.clone();
        scene.listener.touch(&id, inspection.stage());
        if let Err(error) = guarded(&id, || inspection.look(arm, scene))? {
            arm.record.warn(format!("{}: {error}", inspection.lacking()));
        }
    }
    inspection.compare(arms, scene.assignment);
    Ok(())
}
