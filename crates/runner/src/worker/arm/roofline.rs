//! Measured cases held against the peaks of their device.

use super::state::{Arm, Job, drop_comparisons_with_refused};
use crate::peaks::{self, Beside, Peaks, Probe};
use crate::worker::arm::sensors::Sensors;
use crate::worker::poison::{Poisoned, guarded};
use crate::worker::scene::Scene;
use calorimeter_case::{CaseId, Record, Status};

/// Finds the peaks of the device that these cases may come near to, once for each kind of number.
pub fn peaks(arms: &[Arm], first: &CaseId, scene: &mut Scene<'_>) -> Result<Option<Peaks>, Poisoned> {
    let mut kinds: Vec<&str> = arms.iter().flat_map(|arm| arm.kinds.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (mut known, kept) = (scene.context.peaks.take(), scene.context.kept_peaks.clone());
    let find = |probe: &mut Probe<'_>| peaks::of(&kinds, &mut known, kept.as_deref(), probe);
    let peaks = guarded(first, || with_probe(scene, find))?;
    scene.context.peaks = known;
    Ok(peaks)
}

/// Holds measured cases against the peaks of their device. One that goes over them is given a second look; one that is
/// over them then too is no result.
pub fn hold(arms: &mut [Arm], peaks: Option<Peaks>, scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    let Some(mut peaks) = peaks else { return Ok(()) };
    // What travels between devices has a link's roof, which nobody measured.
    if scene.operands.task.is_link() {
        return Ok(());
    }
    for arm in arms.iter_mut().filter(|arm| arm.record.is_ok()) {
        let Arm { job, stopwatch, record, kinds, share, .. } = arm;
        let cache = scene.assignment.device.cache_bytes;
        let place = |record: &Record, peaks: &Peaks| peaks::place(record, peaks, kinds, *share, cache);
        let mut roof = place(record, &peaks);
        let over = roof.as_ref().map(|roof| peaks::doubtful(record, roof, kinds, cache)).unwrap_or_default();
        if !over.is_empty() {
            let count = |count: Option<u64>| count.unwrap_or(0) as f64;
            let (operations, bytes) = (count(record.case.flops), count(record.case.bytes));
            let job: &mut Job = job;
            let mut beside = Beside { work: job, stopwatch: stopwatch.as_mut(), operations, share: *share, bytes };
            let kept = scene.context.kept_peaks.clone();
            let look =
                |probe: &mut Probe<'_>| peaks::again(record, &over, &mut peaks, kept.as_deref(), probe, &mut beside);
            let looked = guarded(&record.case.id, || with_probe(scene, look))?;
            scene.context.peaks = Some(peaks.clone());
            if let Err(why) = looked {
                record.outcome.status = Status::Failed;
                record.outcome.reason = Some(format!("implausible: {why}"));
            }
            roof = place(record, &peaks);
        }
        record.outcome.warnings.extend(peaks.missing(kinds));
        if kinds.is_empty() && record.case.flops.is_some_and(|flops| flops > 0) {
            record.warn("there is no probe for products of such numbers: it has no share of a compute peak");
        }
        record.rates.roofline = roof;
    }
    drop_comparisons_with_refused(arms);
    Ok(())
}

/// Something done with a probe of this process.
fn with_probe<T>(scene: &mut Scene<'_>, body: impl FnOnce(&mut Probe<'_>) -> T) -> T {
    let context = &mut *scene.context;
    let policy = context.sensors.as_ref().map(Sensors::policy).unwrap_or_default();
    let may_tune = !context.silence.forbids_tuning();
    let (told, device) = (&scene.assignment.device, scene.operands.device);
    body(&mut Probe { told, policy, device, may_tune, machines: &mut context.machines })
}
