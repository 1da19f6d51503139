//! Comparison of measured cases with the peaks of their device.

use super::state::{Arm, Job, drop_comparisons_with_refused};
use crate::peaks::{self, Beside, Limit, Peaks, Probe, ProductKind};
use crate::worker::arm::sensors::Sensors;
use crate::worker::poison::{Poisoned, guarded};
use crate::worker::scene::Scene;
use calorimeter_case::record::Roofline;
use calorimeter_case::{CaseId, Status};

/// Determines the peaks that are relevant to these cases, once per GEMM kind.
pub fn peaks(arms: &[Arm], first: &CaseId, group: &mut Scene<'_>) -> Result<Option<Peaks>, Poisoned> {
    // Without operation or byte counts there is nothing to compare.
    if arms.iter().all(|arm| arm.record.case.flops.is_none() && arm.record.case.bytes.is_none()) {
        return Ok(None);
    }
    let mut kinds: Vec<ProductKind> = arms.iter().flat_map(|arm| arm.kinds.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (mut known, peaks_dir) = (group.context.peaks.take(), group.kept_peaks());
    let find = |probe: &mut Probe<'_>| peaks::of(&kinds, &mut known, peaks_dir.as_deref(), probe);
    let peaks = guarded(first, || with_probe(group, find))?;
    group.context.peaks = known;
    Ok(peaks)
}

/// Compares measured cases with the peaks of their device. A case above a peak is measured again, interleaved with
/// probes; if it exceeds the probes, too, its record fails.
pub fn hold(arms: &mut [Arm], peaks: Option<Peaks>, group: &mut Scene<'_>) -> Result<(), Poisoned> {
    let Some(mut peaks) = peaks else { return Ok(()) };
    // Transfers between devices are limited by the link, whose peak is not measured.
    if group.operands.task.is_link() {
        return Ok(());
    }
    let cache = group.assignment.device.cache_bytes;
    if let (Some(why), Some(first)) = (peaks.refused.take(), arms.iter_mut().find(|arm| arm.record.is_ok())) {
        first.record.warn(why);
    }
    for arm in arms.iter_mut().filter(|arm| arm.record.is_ok()) {
        let mut roof = roof_of(arm, &peaks, cache);
        if let Some(outdone) = &roof {
            settle(arm, outdone, &mut peaks, group)?;
            group.context.peaks = Some(peaks.clone());
            roof = roof_of(arm, &peaks, cache);
        }
        let doubtful = over(arm, roof.as_ref(), cache);
        if !doubtful.is_empty() {
            let result = look_again(arm, &doubtful, &mut peaks, group)?;
            group.context.peaks = Some(peaks.clone());
            roof = roof_of(arm, &peaks, cache);
            match result {
                Ok(doubts) if doubts.is_empty() && !over(arm, roof.as_ref(), cache).is_empty() => {
                    arm.record.warn("above the measured peak, but not when interleaved with a probe: use with caution");
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
            record.warn("no share of a compute peak: matmuls of this dtype have no probe");
        }
        record.rates.roofline = roof.map(Box::new);
    }
    drop_comparisons_with_refused(arms);
    Ok(())
}

fn roof_of(arm: &Arm, peaks: &Peaks, cache_bytes: u64) -> Option<Roofline> {
    peaks::place(&arm.record, peaks, &arm.kinds, arm.share, cache_bytes)
}

/// Peaks that a case exceeds.
fn over(arm: &Arm, roof: Option<&Roofline>, cache_bytes: u64) -> Vec<Limit> {
    roof.map(|roof| peaks::doubtful(&arm.record, roof, &arm.kinds, cache_bytes)).unwrap_or_default()
}

/// Measures peaks again that the case exceeded.
fn settle(arm: &mut Arm, roof: &Roofline, peaks: &mut Peaks, group: &mut Scene<'_>) -> Result<(), Poisoned> {
    let peaks_dir = group.kept_peaks();
    let settle = |probe: &mut Probe<'_>| peaks::settle(roof, &arm.kinds, peaks, peaks_dir.as_deref(), probe);
    let failed = guarded(&arm.record.case.id, || with_probe(group, settle))?;
    arm.record.outcome.warnings.extend(failed);
    Ok(())
}

/// Measures a case again, interleaved with probes of the peaks that it exceeds.
fn look_again(
    arm: &mut Arm,
    over: &[Limit],
    peaks: &mut Peaks,
    group: &mut Scene<'_>,
) -> Result<Result<Vec<String>, String>, Poisoned> {
    let Arm { job, stopwatch, record, share, .. } = arm;
    let count = |count: Option<u64>| count.unwrap_or(0) as f64;
    let (form, operations) = (peaks::form(&record.case), count(record.case.flops) * *share);
    let (work, stopwatch, bytes): (&mut Job, _, _) = (job, stopwatch.as_mut(), count(record.case.bytes));
    let peaks_dir = group.kept_peaks();
    guarded(&record.case.id, || {
        with_probe(group, |probe| {
            let case = Beside { probe, work, stopwatch, form, operations, bytes, rivals: None };
            peaks::again(record, over, peaks, peaks_dir.as_deref(), case)
        })
    })
}

/// Runs `body` with a probe of this process.
fn with_probe<T>(group: &mut Scene<'_>, body: impl FnOnce(&mut Probe<'_>) -> T) -> T {
    let context = &mut *group.context;
    let policy = context.sensors.as_ref().map(Sensors::policy).unwrap_or_default();
    let may_tune = !context.silence.forbids_tuning();
    let (facts, device) = (&group.assignment.device, group.operands.device);
    body(&mut Probe { told: facts, policy, device, may_tune, machines: &mut context.machines })
}
