//! What is looked at after a case was timed, outside of any window. An inspection is a file and its line in [`inspections`].

mod fusion;
mod inspection;
mod launches;
mod memory;
mod one_by_one;
mod percentiles;
mod trace;
mod traffic;

use super::arm::Arm;
use super::poison::{Poisoned, guarded};
use super::scene::Scene;
use inspection::Inspection;

/// Every inspection.
fn inspections() -> Vec<Box<dyn Inspection>> {
    vec![
        Box::new(launches::SingleLaunches),
        Box::new(percentiles::Percentiles),
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
