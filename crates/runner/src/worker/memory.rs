//! The memory of each measured case that asks for it: the case is opened anew, alone, and runs a few passes while
//! everything that tells of memory is listened to.

use super::bench::{Common, Context, Hear, Poisoned, guarded, variant};
use super::protocol::{Assignment, Stage};
use crate::cache::file_name;
use calorimeter_sinks::memory_page::{self, Profile};
use calorimeter_sinks::record::Memory;
use calorimeter_sinks::{Case, Record, Status, atomic};
use calorimeter_timing::Failure;
use calorimeter_timing::memory::{Block, Bound, Mark, PoolSample, Quantity, Recording, Source, Timeline};
use calorimeter_zoo::backends::{PoolUsage, empty_pool, pool};
use calorimeter_zoo::{Device, Implementation, Setup, ZooError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Passes that are followed one by one.
const PASSES: [&str; 3] = ["pass 1", "pass 2", "pass 3"];
/// A pool is only asked now and then: passes go on for this long, so that one is caught at its peak.
const ASKED_FOR: Duration = Duration::from_millis(20);
/// Where snapshots and pages lie in the run's folder.
const FOLDER: &str = "memory_profiler";
/// The moments of the two snapshots.
const BEFORE: &str = "before inference";
const AFTER: &str = "after inference";

/// Follows the cases that ask for it; one that cannot be followed says so in its warnings.
pub fn follow(
    records: &mut [(usize, Record)],
    assignment: &Assignment,
    common: &mut Common,
    context: &mut Context,
    hear: &mut dyn Hear,
) -> Result<(), Poisoned> {
    let Some(folder) = assignment.folder.as_deref() else { return Ok(()) };
    let mut followed: Vec<(usize, Timeline)> = Vec::new();
    for (case, record) in records.iter_mut() {
        let wanted = record.case.memory_profiler || record.case.peak_memory;
        if !wanted || record.status != Status::Ok || common.device == Device::Mock {
            continue;
        }
        hear.touch(*case, Stage::Profile);
        match guarded(*case, || timeline(record, common, context))? {
            Ok(timeline) => {
                let peaks = timeline.peaks();
                record.peak_bytes = peaks.allocated.or(peaks.active).or(peaks.reserved);
                record.memory = Some(Memory {
                    peak_allocated: peaks.allocated,
                    peak_active: peaks.active,
                    peak_reserved: peaks.reserved,
                    peak_above_inputs: above_inputs(&timeline),
                    saving: None,
                });
                followed.push((*case, timeline));
            }
            Err(error) => record.warnings.push(format!("its memory was not followed: {error}")),
        }
    }
    for (case, timeline) in &followed {
        let against = assignment.against[*case];
        // Figures of two sources are not the same quantity.
        let comparable = |(case, other): &&(usize, Timeline)| Some(*case) == against && other.source == timeline.source;
        let baseline = followed.iter().find(comparable);
        let saving = baseline.and_then(|(_, other)| saving(other, timeline));
        let label = |case: usize| {
            let Case { recipe, implementation, .. } = &assignment.cases[case];
            format!("{recipe} {implementation}")
        };
        let own = (label(*case), timeline);
        let beside: Vec<_> = baseline.map(|(case, other)| (label(*case), other)).into_iter().chain([own]).collect();
        let Some((_, record)) = records.iter_mut().find(|(number, _)| number == case) else { continue };
        if let Some(memory) = &mut record.memory {
            memory.saving = saving;
        }
        if !record.case.memory_profiler {
            continue;
        }
        match write(folder, &record.case.id, &beside) {
            Ok(()) => record.memory_profile = Some(format!("{FOLDER}/{}", file_name(&record.case.id))),
            Err(error) => record.warnings.push(format!("its memory profile could not be written: {error}")),
        }
    }
    Ok(())
}

/// How many times less memory a case takes at its peak than its baseline, by the same quantity.
fn saving(baseline: &Timeline, own: &Timeline) -> Option<f64> {
    let (theirs, ours) = (baseline.peaks(), own.peaks());
    let ratio = |theirs: Option<u64>, ours: Option<u64>| Some(theirs? as f64 / ours? as f64);
    let ratio = ratio(theirs.allocated, ours.allocated).or_else(|| ratio(theirs.reserved, ours.reserved));
    ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

/// The peak of what was asked for beyond what was there before the first pass.
fn above_inputs(timeline: &Timeline) -> Option<u64> {
    let before = timeline.marks.iter().find(|mark| mark.name == BEFORE)?;
    let inputs = timeline.snapshot(before.at_ns).allocated_bytes?;
    Some(timeline.peaks().allocated?.saturating_sub(inputs))
}

/// Opens the case, runs it and drops it.
fn timeline(record: &Record, common: &mut Common, context: &mut Context) -> Result<Timeline, Failure> {
    let (task, device) = (common.task.clone(), common.device);
    let implementation: Implementation = record.case.implementation.parse()?;
    let treatment = task.support(variant(&record.case)?, implementation, device)?;
    let setup = Setup { implementation, device, sets: 1 };
    // Made before anything listens: they belong to nobody's case.
    let inputs = common.inputs();
    let machines = &mut context.machines;
    let driver = matches!(device, Device::Cuda(_)) && implementation == Implementation::Native;
    let pooled = device != Device::Cpu && !driver;
    // What earlier cases dropped may still be counted until a lazy backend has come to it: it has when this one has run.
    let mut first = if pooled { Some(task.open(inputs, &treatment, setup, machines)?) } else { None };
    if let Some(first) = &mut first {
        first.launch()?;
        first.settle()?;
    }
    let mut run = |mark: &mut dyn FnMut(&'static str)| -> Result<(), ZooError> {
        let mut workload = task.open(inputs, &treatment, setup, machines)?;
        workload.settle()?;
        // One pass must not overlap with the outputs of another.
        let mut pass = || {
            workload.forget();
            workload.settle()?;
            workload.launch()?;
            workload.settle()
        };
        mark(BEFORE);
        for name in PASSES {
            pass()?;
            mark(name);
        }
        mark(AFTER);
        let begun = Instant::now();
        while pooled && begun.elapsed() < ASKED_FOR {
            pass()?;
        }
        Ok(())
    };
    if device == Device::Cpu {
        let mut recording = Recording::start()?;
        let ran = run(&mut |name| recording.mark(name));
        let timeline = recording.finish();
        ran?;
        return Ok(timeline);
    }
    if driver { from_the_driver(&mut run) } else { from_the_pool(device, &mut run) }
}

/// A run that marks its moments.
type Marked<'a> = dyn FnMut(&mut dyn FnMut(&'static str)) -> Result<(), ZooError> + 'a;

/// Follows a run through the figures of burn's pool.
fn from_the_pool(device: Device, run: &mut Marked<'_>) -> Result<Timeline, Failure> {
    let asker = || pool(device).ok_or("the device's pool cannot be asked");
    empty_pool(device);
    let (begun, ask) = (Instant::now(), asker()?);
    let since = Since { begun, before: ask().unwrap_or_default() };
    let (mut marks, mut marked) = (Vec::new(), Vec::new());
    // Between two questions of the sampling thread a mark would see what was there before the first.
    let mut mark = |name: &'static str| {
        marked.extend(since.sample(&ask));
        marks.push(Mark { at_ns: since.now(), name: name.into() });
    };
    let mut pools = sampling(asker()?, since, || run(&mut mark))?;
    pools.append(&mut marked);
    pools.sort_by_key(|sample| sample.at_ns);
    Ok(Timeline { marks, pools, ..Timeline::new(Source::PoolStatistics, since.now()) })
}

/// The beginning of a timeline. What was in use then is not counted; what the pool held is, because the run may use it.
#[derive(Clone, Copy)]
struct Since {
    begun: Instant,
    before: PoolUsage,
}

impl Since {
    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    fn sample(&self, ask: &dyn Fn() -> Option<PoolUsage>) -> Option<PoolSample> {
        let at_ns = self.now();
        let PoolUsage { allocated, active, reserved } = ask()?;
        Some(PoolSample {
            at_ns,
            allocated: allocated.saturating_sub(self.before.allocated),
            active: active.saturating_sub(self.before.active),
            reserved,
        })
    }
}

/// Follows a run whose memory is taken of the driver, block by block, through the driver's records.
#[cfg(feature = "cuda")]
fn from_the_driver(run: &mut Marked<'_>) -> Result<Timeline, Failure> {
    use calorimeter_timing::cuda::{Cupti, Kinds};
    let cupti = Cupti::load()?;
    let (mut marks, start) = (Vec::new(), cupti.now());
    let mut mark = |name: &'static str| marks.push(Mark { at_ns: cupti.now() - start, name: name.into() });
    let ((), seen) = cupti.record(Kinds { memory: true, ..Kinds::default() }, || Ok(run(&mut mark)?))?;
    Ok(Timeline { marks, ..Timeline::of_device(&seen, start, cupti.now()) })
}

#[cfg(not(feature = "cuda"))]
fn from_the_driver(_: &mut Marked<'_>) -> Result<Timeline, Failure> {
    Err("this build has no CUDA".into())
}

/// Asks the pool again and again while something runs.
fn sampling(
    ask: Box<dyn Fn() -> Option<PoolUsage> + Send>,
    since: Since,
    run: impl FnOnce() -> Result<(), ZooError>,
) -> Result<Vec<PoolSample>, Failure> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        let asking = scope.spawn(move || {
            let mut samples: Vec<PoolSample> = Vec::new();
            loop {
                let last = done.load(Ordering::Acquire);
                if let Some(sample) = since.sample(&ask) {
                    // Nothing new needs no sample.
                    let same = |other: &PoolSample| PoolSample { at_ns: sample.at_ns, ..*other } == sample;
                    if last || !samples.last().is_some_and(same) {
                        samples.push(sample);
                    }
                }
                if last {
                    return samples;
                }
                // No pause: the device's thread answers between two operations, and those of a pass are soon enqueued.
                std::thread::yield_now();
            }
        });
        let ran = run();
        done.store(true, Ordering::Release);
        let samples = asking.join().map_err(|_| Failure::from("the thread that asks the pool panicked"))?;
        ran?;
        Ok(samples)
    })
}

/// Writes the snapshots and the page of a case; the baseline, if there is one, comes first.
fn write(folder: &Path, id: &str, beside: &[(String, &Timeline)]) -> Result<(), Failure> {
    let folder = folder.join(FOLDER).join(file_name(id));
    let Some((_, own)) = beside.last() else { return Ok(()) };
    for (name, file) in [(BEFORE, "snapshot_before.json"), (AFTER, "snapshot_after.json")] {
        if let Some(mark) = own.marks.iter().find(|mark| mark.name == name) {
            atomic::write(&folder.join(file), &serde_json::to_vec_pretty(&own.snapshot(mark.at_ns))?)?;
        }
    }
    let profiles: Vec<Profile> = beside
        .iter()
        .enumerate()
        .map(|(index, (label, timeline))| profile(label, timeline, (index > 0).then_some(0)))
        .collect();
    memory_page::write(&folder, id, &profiles)?;
    Ok(())
}

fn profile(label: &str, timeline: &Timeline, against: Option<usize>) -> Profile {
    let peaks = timeline.peaks();
    let peak_at_ns = timeline.peak_at_ns();
    let block = |block: Block| memory_page::Block {
        address: block.address,
        bytes: block.bytes,
        since_ns: block.since_ns,
        what: block.what,
    };
    Profile {
        label: label.to_owned(),
        source: timeline.source.as_str().into(),
        against,
        end_ns: timeline.end_ns,
        lost_from_ns: timeline.lost.and_then(|lost| lost.from_ns),
        allocated: timeline.steps(Quantity::Allocated),
        active: timeline.steps(Quantity::Active),
        reserved: timeline.steps(Quantity::Reserved),
        marks: timeline
            .marks
            .iter()
            .map(|mark| memory_page::Mark { at_ns: mark.at_ns, name: mark.name.to_string() })
            .collect(),
        peaks: memory_page::Peaks {
            allocated: peaks.allocated,
            active: peaks.active,
            reserved: peaks.reserved,
            bound: match peaks.bound {
                Bound::Exact => memory_page::Bound::Exact,
                Bound::AtLeast => memory_page::Bound::AtLeast,
                Bound::Unknown => memory_page::Bound::Unknown,
            },
        },
        peak_at_ns,
        blocks: peak_at_ns.map(|at| timeline.live_at(at).into_iter().map(block).collect()).unwrap_or_default(),
        notes: timeline.notes(),
    }
}
