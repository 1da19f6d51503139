//! The memory of each measured case that asks for it: the case is opened anew, alone, and runs a few passes while
//! everything that tells of memory is listened to.

use super::finding::{Facet, Finding};
use super::inspection::{Inspection, Subject};
use crate::cache::file_name;
use crate::platforms;
use crate::worker::arm::Arm;
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::record::{self, Footprint, Memory};
use calorimeter_case::{Case, CaseId, Implementation, Record};
use calorimeter_sinks::atomic;
use calorimeter_sinks::memory_page::{self, Profile};
use calorimeter_timing::Failure;
use calorimeter_timing::memory::{Block, Bound, Mark, Peaks, Quantity, Timeline};
use calorimeter_zoo::parts::{Part, heard};
use calorimeter_zoo::{Operand, Setup, Task, Workload, ZooError};
use std::path::Path;
use std::time::{Duration, Instant};

/// Passes that are followed one by one.
const PASSES: [&str; 3] = ["pass 1", "pass 2", "pass 3"];
/// A pool is only asked now and then: passes go on until one is caught at its peak, for no longer than this.
const PATIENCE: Duration = Duration::from_millis(500);
/// The same where the peak is one figure among others, of hundreds of cases.
const LITTLE_PATIENCE: Duration = Duration::from_millis(50);
/// Where snapshots and pages lie in the run's folder.
const FOLDER: &str = "memory_profiler";
/// The moments of the two snapshots.
const BEFORE: &str = "before inference";
const AFTER: &str = "after inference";
/// The end of the pass whose parts are told apart.
const END: &str = "end";

/// Follows the cases that ask for it.
#[derive(Default)]
pub struct Following {
    followed: Vec<Followed>,
}

/// A case that was followed; what it saves is known when all were.
struct Followed {
    case: CaseId,
    timeline: Timeline,
    parts: Option<Timeline>,
    memory: Memory,
}

impl Inspection for Following {
    fn wanted(&self, case: &Case, assignment: &Assignment) -> bool {
        (case.memory_profiler || case.peak_memory) && assignment.folder.is_some()
    }

    fn alone(&self) -> bool {
        true
    }

    fn look(&mut self, subject: &mut Subject<'_>, scene: &mut Scene<'_>) -> Result<Option<Facet>, Failure> {
        let record = subject.record;
        if platforms::of(scene.operands.device).is_scripted() {
            return Err("the mock device has none".into());
        }
        let timeline = timeline(record, scene)?;
        let parts = if record.case.memory_profiler { parts(record, scene) } else { Ok(None) };
        let untold = |why: Failure| subject.remarks.push(format!("its memory page does not show its phases: {why}"));
        let parts = parts.map_err(untold).ok().flatten();
        let peaks = timeline.peaks();
        let memory = Memory {
            peak_allocated: peaks.allocated,
            peak_active: peaks.active,
            peak_reserved: peaks.reserved,
            peak_above_inputs: above_inputs(&scene.operands.task, record, &timeline),
            bound: bound(peaks.bound),
            peak_at_most: timeline.ceiling.filter(|_| peaks.bound == Bound::AtLeast),
            ..Memory::default()
        };
        self.followed.push(Followed { case: record.case.id.clone(), timeline, parts, memory });
        Ok(None)
    }

    fn lacking(&self) -> &'static str {
        "its memory was not followed"
    }

    fn compare(&self, arms: &[Arm], assignment: &Assignment) -> Vec<Finding> {
        let Some(folder) = assignment.folder.as_deref() else { return Vec::new() };
        let finding = |Arm { record, assigned, .. }: &Arm| {
            let Followed { case, timeline: own, parts, memory } = self.of(&record.case.id)?;
            // Figures of two sources are not the same quantity.
            let told_by = |timeline: &Timeline| (timeline.source, timeline.pools.is_empty());
            let baseline = assigned.against.as_ref().and_then(|id| Some((id, &self.of(id)?.timeline)));
            let baseline = baseline.filter(|(_, other)| told_by(other) == told_by(own));
            let saving = baseline.and_then(|(_, other)| saving(other, own));
            let memory = Memory {
                saving: saving.map(|(ratio, _)| ratio),
                saving_bound: saving.map(|(_, of)| bound(of)).unwrap_or_default(),
                ..*memory
            };
            let label = |id: &CaseId| {
                let assigned = assignment.cases.iter().find(|assigned| assigned.case.id == *id);
                assigned.map_or_else(String::new, |one| format!("{} {}", one.case.recipe, one.case.implementation))
            };
            let mut warnings = Vec::new();
            let memory_profile = record.case.memory_profiler.then(|| {
                let beside = baseline.map(|(id, other)| (label(id), other));
                let beside: Vec<_> = beside.into_iter().chain([(label(case), own)]).collect();
                let parts = parts.as_ref().map(|parts| (format!("{}, phase by phase", label(case)), parts));
                let written = write(folder, case, &beside, parts).map(|()| format!("{FOLDER}/{}", file_name(case)));
                let failed =
                    |error: Failure| warnings.push(format!("its memory profile could not be written: {error}"));
                written.map_err(failed).ok()
            });
            let footprint = Footprint {
                peak_bytes: in_use(&own.peaks()),
                memory: Some(Box::new(memory)),
                memory_profile: memory_profile.flatten(),
            };
            Some(Finding { case: case.clone(), facet: Some(Facet::Footprint(footprint)), warnings })
        };
        arms.iter().filter_map(finding).collect()
    }
}

impl Following {
    fn of(&self, case: &CaseId) -> Option<&Followed> {
        self.followed.iter().find(|followed| followed.case == *case)
    }
}

/// How many times less memory a case takes at its peak than its baseline; the least that it may be, where a peak is not
/// known but bounded.
fn saving(baseline: &Timeline, own: &Timeline) -> Option<(f64, Bound)> {
    let (theirs, ours) = (baseline.peaks(), own.peaks());
    let most = match ours.bound {
        Bound::Exact => in_use(&ours)?,
        Bound::AtLeast => own.ceiling?,
        Bound::Unknown => return None,
    };
    let bound = match (theirs.bound, ours.bound) {
        (Bound::Unknown, _) => return None,
        (Bound::Exact, Bound::Exact) => Bound::Exact,
        _ => Bound::AtLeast,
    };
    let ratio = in_use(&theirs)? as f64 / most as f64;
    Some((ratio, bound)).filter(|(ratio, _)| ratio.is_finite() && *ratio > 0.0)
}

/// The peak of what tensors use; who has no pool takes just that of the device.
fn in_use(peaks: &Peaks) -> Option<u64> {
    peaks.allocated.or(peaks.active).or(peaks.reserved)
}

/// The peak of what tensors use beyond the inputs and weights.
fn above_inputs(task: &Task, record: &Record, timeline: &Timeline) -> Option<u64> {
    let inputs = match record.case.implementation {
        // It takes its outputs when it is opened: they are there before the first pass.
        Implementation::Native => input_bytes(task, record)?,
        _ => {
            let before = timeline.marks.iter().find(|mark| mark.name == BEFORE)?;
            timeline.snapshot(before.at_ns).allocated_bytes?
        }
    };
    in_use(&timeline.peaks())?.checked_sub(inputs)
}

/// Bytes of the inputs and weights as a task declares them; `None` where they need not lie on the device.
fn input_bytes(task: &Task, record: &Record) -> Option<u64> {
    match task {
        Task::Model(problem) => {
            let (rows, cols) = problem.layout().input;
            Some(rows * cols * problem.dtype.bytes() + record.weights.weight_bytes?)
        }
        Task::Operator(problem) if problem.operator.is_link() => None,
        Task::Foreign(_) => None,
        Task::Operator(problem) => Some(problem.operator.inputs(&problem.spec).iter().map(Operand::bytes).sum()),
    }
}

/// What is done with a workload that was opened: passes that mark their moments, and go on for as long as they are told to.
type Runs<'a> =
    dyn FnMut(&mut dyn Workload, &mut dyn FnMut(&'static str), &dyn Fn() -> bool) -> Result<(), ZooError> + 'a;

/// One pass, which does not overlap with the outputs of another.
fn pass(workload: &mut dyn Workload) -> Result<(), ZooError> {
    workload.forget();
    workload.settle()?;
    workload.launch()?;
    workload.settle()
}

/// The memory of passes, as they are when they are timed.
fn timeline(record: &Record, scene: &mut Scene<'_>) -> Result<Timeline, Failure> {
    let patience = if record.case.memory_profiler { PATIENCE } else { LITTLE_PATIENCE };
    follow(record, scene, patience, &mut |workload, mark, again| {
        mark(BEFORE);
        for name in PASSES {
            pass(workload)?;
            mark(name);
        }
        mark(AFTER);
        while again() {
            pass(workload)?;
        }
        Ok(())
    })
}

/// The memory of a pass whose parts wait for each other, which may take more or less than one whose parts do not; `None` of a
/// pass that is one part.
fn parts(record: &Record, scene: &mut Scene<'_>) -> Result<Option<Timeline>, Failure> {
    let count = scene.operands.task.parts().len();
    if count < 2 {
        return Ok(None);
    }
    // Memory that is taken before anything listens is in no timeline.
    let (mut parts, mut ended) = (Vec::<Part>::with_capacity(count), Instant::now());
    let mut timeline = follow(record, scene, Duration::ZERO, &mut |workload, mark, _| {
        pass(workload)?;
        parts.clear();
        parts = heard(std::mem::take(&mut parts), || pass(workload))?;
        mark(END);
        ended = Instant::now();
        Ok(())
    })?;
    let end_ns = timeline.marks.last().map_or(timeline.end_ns, |end| end.at_ns);
    let begun = |part: &Part| end_ns.saturating_sub((ended - part.began).as_nanos() as u64);
    let parts = parts.iter().map(|part| Mark { at_ns: begun(part), name: part.name.into() });
    timeline.marks.splice(0..0, parts);
    Ok(Some(timeline))
}

/// Opens the case, runs it and drops it.
fn follow(
    record: &Record,
    scene: &mut Scene<'_>,
    patience: Duration,
    runs: &mut Runs<'_>,
) -> Result<Timeline, Failure> {
    let (task, device) = (scene.operands.task.clone(), scene.operands.device);
    let treatment = scene.operands.treatment(&record.case)?;
    let setup = Setup { implementation: record.case.implementation, device, sets: 1 };
    // Made before anything listens: they belong to nobody's case.
    let inputs = scene.operands.inputs();
    let machines = &mut scene.context.machines;
    let mut run = |mark: &mut dyn FnMut(&'static str), again: &dyn Fn() -> bool| -> Result<(), ZooError> {
        let mut workload = task.open(inputs, &treatment, setup, machines)?;
        workload.settle()?;
        runs(workload.as_mut(), mark, again)
    };
    platforms::of(device).follow(setup, patience, &mut run)
}

/// Writes the snapshots and the page of a case; the baseline, if there is one, comes first, and a pass part by part last.
fn write(
    folder: &Path,
    id: &str,
    beside: &[(String, &Timeline)],
    parts: Option<(String, &Timeline)>,
) -> Result<(), Failure> {
    let folder = folder.join(FOLDER).join(file_name(id));
    let Some((_, own)) = beside.last() else { return Ok(()) };
    for (name, file) in [(BEFORE, "snapshot_before.json"), (AFTER, "snapshot_after.json")] {
        if let Some(mark) = own.marks.iter().find(|mark| mark.name == name) {
            let snapshot = serde_json::to_vec_pretty(&own.snapshot(mark.at_ns))?;
            atomic::write(&folder.join(file), &snapshot).map_err(|error| error.with_causes())?;
        }
    }
    let profiles: Vec<Profile> = beside
        .iter()
        .enumerate()
        .map(|(index, (label, timeline))| profile(label, timeline, (index > 0).then_some(0)))
        .chain(parts.iter().map(|(label, timeline)| profile(label, timeline, None)))
        .collect();
    memory_page::write(&folder, id, &profiles).map_err(|error| error.with_causes())?;
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
            bound: bound(peaks.bound),
        },
        peak_at_ns,
        blocks: peak_at_ns.map(|at| timeline.live_at(at).into_iter().map(block).collect()).unwrap_or_default(),
        notes: timeline.notes(),
    }
}

fn bound(bound: Bound) -> record::Bound {
    match bound {
        Bound::Exact => record::Bound::Exact,
        Bound::AtLeast => record::Bound::AtLeast,
        Bound::Unknown => record::Bound::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Status;
    use calorimeter_case::record::Weights;
    use calorimeter_recipes::{Dtype, Element};
    use calorimeter_shapes::Axes;
    use calorimeter_timing::memory::{Mark, MemoryEvent, PoolSample, Source};

    fn record(implementation: &str) -> Record {
        let case = Case { implementation: implementation.parse().unwrap(), ..Case::default() };
        Record { weights: Weights { weight_bytes: Some(0), ..Weights::default() }, ..Record::new(case, Status::Ok) }
    }

    fn task(name: &str, axes: &[(&str, u64)]) -> Task {
        let axes = Axes::new(axes.iter().map(|&(name, size)| (name.to_owned(), size))).unwrap();
        Task::new(name.parse().unwrap(), &axes, Element::Float(Dtype::F32), None, 42).unwrap()
    }

    fn mark(at_ns: u64) -> Mark {
        Mark { at_ns, name: BEFORE.into() }
    }

    fn pool(active: u64, ceiling: u64) -> Timeline {
        let sample = |at_ns, active| PoolSample { at_ns, allocated: active, active, reserved: 1 << 23 };
        let pools = vec![sample(1, 300), sample(2, active)];
        Timeline { pools, ceiling: Some(ceiling), marks: vec![mark(1)], ..Timeline::new(Source::PoolStatistics, 3) }
    }

    #[test]
    fn outputs_that_are_there_before_the_first_pass_are_above_the_inputs() {
        let taken = |at_ns, bytes| MemoryEvent { at_ns, address: at_ns << 20, bytes, freed: false, what: None };
        let stream = task("stream_add", &[("elements", 1000)]);
        for source in [Source::Cupti, Source::HostAllocator] {
            let events = vec![taken(1, 4000), taken(2, 4000), taken(3, 4000)];
            let timeline = Timeline { events, marks: vec![mark(4)], ..Timeline::new(source, 5) };
            assert_eq!(above_inputs(&stream, &record("native"), &timeline), Some(4000));
        }
    }

    #[test]
    fn what_passes_allocate_is_above_what_was_there_before_the_first() {
        let stream = task("stream_add", &[("elements", 1000)]);
        assert_eq!(above_inputs(&stream, &record("eager"), &pool(1000, 1000)), Some(700));
    }

    #[test]
    fn a_saving_of_peaks_that_are_bounds_is_a_bound() {
        assert_eq!(saving(&pool(1000, 1000), &pool(400, 400)), Some((2.5, Bound::Exact)));
        assert_eq!(saving(&pool(1000, 1020), &pool(400, 400)), Some((2.5, Bound::AtLeast)));
        assert_eq!(saving(&pool(1000, 1000), &pool(400, 800)), Some((1.25, Bound::AtLeast)));
    }
}
