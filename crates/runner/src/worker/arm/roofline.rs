//! Comparison of measured cases with the peaks of their device.

use super::state::{CaseArm, drop_comparisons_with_refused};
use crate::worker::group_context::GroupContext;
use crate::worker::poison::{PoisonedProcess, catch_poison};
use calorimeter_case::record::Roofline;
use calorimeter_case::{CaseId, Status, Warning};
use calorimeter_probe::TimedWorkload;
use calorimeter_probe::peaks::{self, CaseRecheck, DevicePeaks, Limit, MatmulPrecision, PeakProbe};
use calorimeter_probe::sensors::Sensors;

/// Determines the peaks that are relevant to these cases, once per GEMM kind.
pub(crate) fn peaks(
    arms: &[CaseArm],
    first: &CaseId,
    group: &mut GroupContext<'_>,
) -> Result<Option<DevicePeaks>, PoisonedProcess> {
    // Without operation or byte counts there is nothing to compare.
    if arms.iter().all(|arm| arm.record.case.flops.is_none() && arm.record.case.bytes.is_none()) {
        return Ok(None);
    }
    let mut kinds: Vec<MatmulPrecision> = arms.iter().flat_map(|arm| arm.matmul_kinds.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (mut known, peaks_dir) = (group.context.peaks.take(), group.peaks_dir());
    let find = |probe: &mut PeakProbe<'_>| peaks::load_or_measure(&kinds, &mut known, peaks_dir.as_deref(), probe);
    let peaks = catch_poison(first, || with_probe(group, find))?;
    group.context.peaks = known;
    Ok(peaks)
}

/// Compares measured cases with the peaks of their device. A case above a peak is measured again, interleaved with
/// probes; if it exceeds the probes, too, its record fails.
pub(super) fn compare_with_peaks(
    arms: &mut [CaseArm],
    peaks: Option<DevicePeaks>,
    group: &mut GroupContext<'_>,
) -> Result<(), PoisonedProcess> {
    let Some(mut peaks) = peaks else { return Ok(()) };
    // Transfers between devices are limited by the link, whose peak is not measured.
    if group.operands.task.is_transfer() {
        return Ok(());
    }
    let cache = group.assignment.device.cache_bytes;
    if let (Some(why), Some(first)) = (peaks.rejection.take(), arms.iter_mut().find(|arm| arm.record.is_ok())) {
        first.record.warnings.push(Warning::ignored_peaks(why));
    }
    for arm in arms.iter_mut().filter(|arm| arm.record.is_ok()) {
        let mut roof = roofline_of(arm, &peaks, cache);
        if let Some(outdone) = &roof {
            remeasure_peaks(arm, outdone, &mut peaks, group)?;
            group.context.peaks = Some(peaks.clone());
            roof = roofline_of(arm, &peaks, cache);
        }
        let doubtful = exceeded_limits(arm, roof.as_ref(), cache);
        if !doubtful.is_empty() {
            let result = remeasure_case(arm, &doubtful, &mut peaks, group)?;
            group.context.peaks = Some(peaks.clone());
            roof = roofline_of(arm, &peaks, cache);
            match result {
                Ok(doubts) if doubts.is_empty() && !exceeded_limits(arm, roof.as_ref(), cache).is_empty() => {
                    arm.record.warnings.push(Warning::above_peak());
                }
                Ok(doubts) => arm.record.warnings.extend(doubts),
                Err(why) => {
                    arm.record.outcome.status = Status::Failed;
                    arm.record.outcome.reason = Some(format!("implausible: {why}"));
                }
            }
        }
        let CaseArm { record, matmul_kinds: kinds, .. } = arm;
        record.warnings.extend(peaks.missing_peaks(kinds));
        if kinds.is_empty() && record.case.flops.is_some_and(|flops| flops > 0) {
            record.warnings.push(Warning::missing_probe());
        }
        record.rates.roofline = roof.map(Box::new);
    }
    drop_comparisons_with_refused(arms);
    Ok(())
}

fn roofline_of(arm: &CaseArm, peaks: &DevicePeaks, cache_bytes: u64) -> Option<Roofline> {
    peaks::roofline(&arm.record, peaks, &arm.matmul_kinds, arm.computed_share, cache_bytes)
}

/// Peaks that a case exceeds.
fn exceeded_limits(arm: &CaseArm, roof: Option<&Roofline>, cache_bytes: u64) -> Vec<Limit> {
    roof.map(|roof| peaks::exceeded_limits(&arm.record, roof, &arm.matmul_kinds, cache_bytes)).unwrap_or_default()
}

/// Measures peaks again that the case exceeded.
fn remeasure_peaks(
    arm: &mut CaseArm,
    roof: &Roofline,
    peaks: &mut DevicePeaks,
    group: &mut GroupContext<'_>,
) -> Result<(), PoisonedProcess> {
    let peaks_dir = group.peaks_dir();
    let settle = |probe: &mut PeakProbe<'_>| {
        peaks::remeasure_exceeded(roof, &arm.matmul_kinds, peaks, peaks_dir.as_deref(), probe)
    };
    let failed = catch_poison(&arm.record.case.id, || with_probe(group, settle))?;
    arm.record.warnings.extend(failed);
    Ok(())
}

/// Measures a case again, interleaved with probes of the peaks that it exceeds.
fn remeasure_case(
    arm: &mut CaseArm,
    over: &[Limit],
    peaks: &mut DevicePeaks,
    group: &mut GroupContext<'_>,
) -> Result<Result<Vec<Warning>, String>, PoisonedProcess> {
    let CaseArm { job, stopwatch, record, computed_share: share, .. } = arm;
    let count = |count: Option<u64>| count.unwrap_or(0) as f64;
    let (form, operations) = (peaks::form(&record.case), count(record.case.flops) * *share);
    let (work, stopwatch, bytes): (&mut TimedWorkload, _, _) = (job, stopwatch.as_mut(), count(record.case.bytes));
    let peaks_dir = group.peaks_dir();
    catch_poison(&record.case.id, || {
        with_probe(group, |probe| {
            let case = CaseRecheck { probe, work, stopwatch, shape: form, operations, bytes, open_probes: None };
            peaks::verify_fast_case(record, over, peaks, peaks_dir.as_deref(), case)
        })
    })
}

/// Runs `body` with a probe of this process.
fn with_probe<T>(group: &mut GroupContext<'_>, body: impl FnOnce(&mut PeakProbe<'_>) -> T) -> T {
    let context = &mut *group.context;
    let policy = context.sensors.as_ref().map(Sensors::policy).unwrap_or_default();
    let may_tune = !context.silence.is_tuning_disabled();
    let (facts, device) = (&group.assignment.device, group.operands.device);
    body(&mut PeakProbe { facts, policy, device, may_tune, machines: &mut context.machines })
}
