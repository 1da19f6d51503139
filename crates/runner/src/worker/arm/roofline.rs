//! Measured cases held against the peaks of their device.

use super::state::{Arm, Job, drop_comparisons_with_refused};
use crate::peaks::{self, Beside, Limit, Peaks, Probe, ProductKind};
use crate::worker::arm::sensors::Sensors;
use crate::worker::poison::{Poisoned, guarded};
use crate::worker::scene::Scene;
use calorimeter_case::record::Roofline;
use calorimeter_case::{CaseId, Status};

/// Finds the peaks of the device that these cases may come near to, once for each kind of number.
pub fn peaks(arms: &[Arm], first: &CaseId, scene: &mut Scene<'_>) -> Result<Option<Peaks>, Poisoned> {
    // Where nothing is counted there is nothing to hold against them.
    if arms.iter().all(|arm| arm.record.case.flops.is_none() && arm.record.case.bytes.is_none()) {
        return Ok(None);
    }
    let mut kinds: Vec<ProductKind> = arms.iter().flat_map(|arm| arm.kinds.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (mut known, kept) = (scene.context.peaks.take(), scene.kept_peaks());
    let find = |probe: &mut Probe<'_>| peaks::of(&kinds, &mut known, kept.as_deref(), probe);
    let peaks = guarded(first, || with_probe(scene, find))?;
    scene.context.peaks = known;
    Ok(peaks)
}

/// Holds measured cases against the peaks of their device. One that goes over them is given a second look, in turns with
/// probes; one that is over those too is no result.
pub fn hold(arms: &mut [Arm], peaks: Option<Peaks>, scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    let Some(mut peaks) = peaks else { return Ok(()) };
    // What travels between devices has a link's roof, which nobody measured.
    if scene.operands.task.is_link() {
        return Ok(());
    }
    let cache = scene.assignment.device.cache_bytes;
    if let (Some(why), Some(first)) = (peaks.refused.take(), arms.iter_mut().find(|arm| arm.record.is_ok())) {
        first.record.warn(why);
    }
    for arm in arms.iter_mut().filter(|arm| arm.record.is_ok()) {
        let mut roof = roof_of(arm, &peaks, cache);
        if let Some(outdone) = &roof {
            settle(arm, outdone, &mut peaks, scene)?;
            scene.context.peaks = Some(peaks.clone());
            roof = roof_of(arm, &peaks, cache);
        }
        let doubtful = over(arm, roof.as_ref(), cache);
        if !doubtful.is_empty() {
            let looked = look_again(arm, &doubtful, &mut peaks, scene)?;
            scene.context.peaks = Some(peaks.clone());
            roof = roof_of(arm, &peaks, cache);
            match looked {
                Ok(doubts) if doubts.is_empty() && !over(arm, roof.as_ref(), cache).is_empty() => {
                    arm.record
                        .warn("it was faster than any probe, though not in turns with one: its time may be wrong");
                }
                Ok(doubts) => arm.record.outcome.warnings.extend(doubts),
                Err(why) => {
                    arm.record.outcome.status = Status::Failed;
                    arm.record.outcome.reason = Some(format!("implausible: {why}"));
                }
            }
        }
        let Arm { record, kinds, .. } = arm;
        record.outcome.warnings.extend(peaks.missing(kinds));
        if kinds.is_empty() && record.case.flops.is_some_and(|flops| flops > 0) {
            record.warn("there is no probe for products of such numbers: it has no share of a compute peak");
        }
        record.rates.roofline = roof.map(Box::new);
    }
    drop_comparisons_with_refused(arms);
    Ok(())
}

fn roof_of(arm: &Arm, peaks: &Peaks, cache_bytes: u64) -> Option<Roofline> {
    peaks::place(&arm.record, peaks, &arm.kinds, arm.share, cache_bytes)
}

/// The peaks that a case is over.
fn over(arm: &Arm, roof: Option<&Roofline>, cache_bytes: u64) -> Vec<Limit> {
    roof.map(|roof| peaks::doubtful(&arm.record, roof, &arm.kinds, cache_bytes)).unwrap_or_default()
}

/// Probes peaks again that it outdid.
fn settle(arm: &mut Arm, roof: &Roofline, peaks: &mut Peaks, scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    let kept = scene.kept_peaks();
    let settle = |probe: &mut Probe<'_>| peaks::settle(roof, &arm.kinds, peaks, kept.as_deref(), probe);
    let failed = guarded(&arm.record.case.id, || with_probe(scene, settle))?;
    arm.record.outcome.warnings.extend(failed);
    Ok(())
}

/// Measures a case again, in turns with probes of what it is over.
fn look_again(
    arm: &mut Arm,
    over: &[Limit],
    peaks: &mut Peaks,
    scene: &mut Scene<'_>,
) -> Result<Result<Vec<String>, String>, Poisoned> {
    let Arm { job, stopwatch, record, share, .. } = arm;
    let count = |count: Option<u64>| count.unwrap_or(0) as f64;
    let (form, operations) = (peaks::form(&record.case), count(record.case.flops) * *share);
    let (work, stopwatch, bytes): (&mut Job, _, _) = (job, stopwatch.as_mut(), count(record.case.bytes));
    let kept = scene.kept_peaks();
    guarded(&record.case.id, || {
        with_probe(scene, |probe| {
            let case = Beside { probe, work, stopwatch, form, operations, bytes, rivals: None };
            peaks::again(record, over, peaks, kept.as_deref(), case)
        })
    })
}

/// Something done with a probe of this process.
fn with_probe<T>(scene: &mut Scene<'_>, body: impl FnOnce(&mut Probe<'_>) -> T) -> T {
    let context = &mut *scene.context;
    let policy = context.sensors.as_ref().map(Sensors::policy).unwrap_or_default();
    let may_tune = !context.silence.forbids_tuning();
    let (told, device) = (&scene.assignment.device, scene.operands.device);
    body(&mut Probe { told, policy, device, may_tune, machines: &mut context.machines })
}
