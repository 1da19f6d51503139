//! Memory inspection: the case is opened again without other workloads and runs a few passes, while all available
//! sources of memory events are recorded.

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

/// Passes with a mark each.
const PASSES: [&str; 3] = ["pass 1", "pass 2", "pass 3"];
/// Time limit for catching the peak. The pool is only polled, so that passes repeat until a sample reaches the ceiling.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time limit if only the peak is requested, possibly for hundreds of cases.
const LITTLE_PATIENCE: Duration = Duration::from_millis(50);
/// Directory of snapshots and pages in the run's folder.
const FOLDER: &str = "memory_profiler";
/// Marks of the two snapshots.
const BEFORE: &str = "before inference";
const AFTER: &str = "after inference";
/// Mark at the end of the pass that is divided into phases.
const END: &str = "end";

/// Inspection of memory usage.
#[derive(Default)]
pub struct Following {
    followed: Vec<Followed>,
}

/// Inspected case. Its saving is computed after all cases were inspected.
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

    fn look(&mut self, subject: &mut Subject<'_>, group: &mut Scene<'_>) -> Result<Option<Facet>, Failure> {
        let record = subject.record;
        if platforms::of(group.operands.device).is_scripted() {
            return Err("the mock device has none".into());
        }
        let timeline = timeline(record, group)?;
        let parts = if record.case.memory_profiler { parts(record, group) } else { Ok(None) };
        let no_phases = |why: Failure| subject.remarks.push(format!("the memory page does not show phases: {why}"));
        let parts = parts.map_err(no_phases).ok().flatten();
        let peaks = timeline.peaks();
        let memory = Memory {
            peak_allocated: peaks.allocated,
            peak_active: peaks.active,
            peak_reserved: peaks.reserved,
            peak_above_inputs: above_inputs(&group.operands.task, record, &timeline),
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
            // Figures from different sources are not comparable.
            let source = |timeline: &Timeline| (timeline.source, timeline.pools.is_empty());
            let baseline = assigned.against.as_ref().and_then(|id| Some((id, &self.of(id)?.timeline)));
            let baseline = baseline.filter(|(_, other)| source(other) == source(own));
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
                let profiles = baseline.map(|(id, other)| (label(id), other));
                let profiles: Vec<_> = profiles.into_iter().chain([(label(case), own)]).collect();
                let parts = parts.as_ref().map(|parts| (format!("{}, phase by phase", label(case)), parts));
                let written = write(folder, case, &profiles, parts).map(|()| format!("{}/{}", FOLDER, file_name(case)));
                let failed = |error: Failure| warnings.push(format!("cannot write the memory profile: {error}"));
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

/// Ratio of the baseline's peak memory to that of the case; a lower bound if a peak is only bounded.
fn saving(baseline: &Timeline, own: &Timeline) -> Option<(f64, Bound)> {
    let (baseline_peaks, peaks) = (baseline.peaks(), own.peaks());
    let max = match peaks.bound {
        Bound::Exact => in_use(&peaks)?,
        Bound::AtLeast => own.ceiling?,
        Bound::Unknown => return None,
    };
    let bound = match (baseline_peaks.bound, peaks.bound) {
        (Bound::Unknown, _) => return None,
        (Bound::Exact, Bound::Exact) => Bound::Exact,
        _ => Bound::AtLeast,
    };
    let ratio = in_use(&baseline_peaks)? as f64 / max as f64;
    Some((ratio, bound)).filter(|(ratio, _)| ratio.is_finite() && *ratio > 0.0)
}

/// Peak of memory used by tensors; the peak of the device if there is no pool.
fn in_use(peaks: &Peaks) -> Option<u64> {
    peaks.allocated.or(peaks.active).or(peaks.reserved)
}

/// Peak of memory used by tensors, excluding inputs and weights.
fn above_inputs(task: &Task, record: &Record, timeline: &Timeline) -> Option<u64> {
    let inputs = match record.case.implementation {
        // Native workloads allocate their outputs when they are opened, before the first pass.
        Implementation::Native => input_bytes(task, record)?,
        _ => {
            let before = timeline.marks.iter().find(|mark| mark.name == BEFORE)?;
            timeline.snapshot(before.at_ns).allocated_bytes?
        }
    };
    in_use(&timeline.peaks())?.checked_sub(inputs)
}

/// Bytes of inputs and weights as declared by the task; `None` if they need not be on the device.
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

/// Passes of an open workload. They set marks and repeat while the last argument returns true.
type Runs<'a> =
    dyn FnMut(&mut dyn Workload, &mut dyn FnMut(&'static str), &dyn Fn() -> bool) -> Result<(), ZooError> + 'a;

/// Runs one pass whose outputs do not overlap in time with those of another.
fn pass(workload: &mut dyn Workload) -> Result<(), ZooError> {
    workload.forget();
    workload.settle()?;
    workload.launch()?;
    workload.settle()
}

/// Records the memory of passes as they are timed.
fn timeline(record: &Record, group: &mut Scene<'_>) -> Result<Timeline, Failure> {
    let patience = if record.case.memory_profiler { PATIENCE } else { LITTLE_PATIENCE };
    follow(record, group, patience, &mut |workload, mark, again| {
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

/// Records the memory of a pass that synchronizes between phases, which may change its peak. `None` if the task has a
/// single phase.
fn parts(record: &Record, group: &mut Scene<'_>) -> Result<Option<Timeline>, Failure> {
    let count = group.operands.task.parts().len();
    if count < 2 {
        return Ok(None);
    }
    // Allocated before the recording starts, so that it does not appear in the timeline.
    let (mut parts, mut ended) = (Vec::<Part>::with_capacity(count), Instant::now());
    let mut timeline = follow(record, group, Duration::ZERO, &mut |workload, mark, _| {
        pass(workload)?;
        parts.clear();
        parts = heard(std::mem::take(&mut parts), || pass(workload))?;
        mark(END);
        ended = Instant::now();
        Ok(())
    })?;
    let end_ns = timeline.marks.last().map_or(timeline.end_ns, |end| end.at_ns);
    let start_ns = |part: &Part| end_ns.saturating_sub((ended - part.began).as_nanos() as u64);
    let parts = parts.iter().map(|part| Mark { at_ns: start_ns(part), name: part.name.into() });
    timeline.marks.splice(0..0, parts);
    Ok(Some(timeline))
}

/// Opens the case, runs its passes and drops it.
fn follow(
    record: &Record,
    group: &mut Scene<'_>,
    patience: Duration,
    runs: &mut Runs<'_>,
) -> Result<Timeline, Failure> {
    let (task, device) = (group.operands.task.clone(), group.operands.device);
    let treatment = group.operands.treatment(&record.case)?;
    let setup = Setup { implementation: record.case.implementation, device, sets: 1 };
    // Computed before the recording starts, because inputs are shared by all cases.
    let inputs = group.operands.inputs();
    let machines = &mut group.context.machines;
    let mut run = |mark: &mut dyn FnMut(&'static str), again: &dyn Fn() -> bool| -> Result<(), ZooError> {
        let mut workload = task.open(inputs, &treatment, setup, machines)?;
        workload.settle()?;
        runs(workload.as_mut(), mark, again)
    };
    platforms::of(device).follow(setup, patience, &mut run)
}

/// Writes the snapshots and the page of a case: the baseline first, if any, and the pass divided into phases last.
fn write(
    folder: &Path,
    id: &str,
    timelines: &[(String, &Timeline)],
    parts: Option<(String, &Timeline)>,
) -> Result<(), Failure> {
    let folder = folder.join(FOLDER).join(file_name(id));
    let Some((_, own)) = timelines.last() else { return Ok(()) };
    for (name, file) in [(BEFORE, "snapshot_before.json"), (AFTER, "snapshot_after.json")] {
        if let Some(mark) = own.marks.iter().find(|mark| mark.name == name) {
            let snapshot = serde_json::to_vec_pretty(&own.snapshot(mark.at_ns))?;
            atomic::write(&folder.join(file), &snapshot).map_err(|error| error.with_causes())?;
        }
    }
    let profiles: Vec<Profile> = timelines
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
