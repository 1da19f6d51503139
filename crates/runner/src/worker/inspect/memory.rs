//! Memory inspection: the case is opened again without other workloads and runs a few passes, while all available
//! sources of memory events are recorded.

use super::finding::{Facet, InspectionFinding};
use super::inspection::{InspectedCase, Inspection};
use crate::worker::arm::CaseArm;
use crate::worker::group_context::GroupContext;
use crate::worker::protocol::{AssignedCase, Assignment};
use calorimeter_case::record::{self, Footprint, PeakMemory};
use calorimeter_case::{Case, CaseId, Implementation, Record, Warning};
use calorimeter_probe::platforms;
use calorimeter_sinks::atomic;
use calorimeter_sinks::cache::file_name;
use calorimeter_sinks::memory_page::{self, MemoryProfile};
use calorimeter_timing::Failure;
use calorimeter_timing::memory::{LiveBlock, MemoryPeaks, Quantity, Timeline, TimelineBound, TimelineMark};
use calorimeter_zoo::parts::{self, PassPart};
use calorimeter_zoo::{Operand, Setup, Task, Workload, ZooError};
use std::path::Path;
use std::time::{Duration, Instant};

/// Passes with a mark each.
const PASSES: [&str; 3] = ["pass 1", "pass 2", "pass 3"];
/// Time limit for catching the peak. The pool is only polled, so that passes repeat until a sample reaches the ceiling.
const PEAK_TIMEOUT: Duration = Duration::from_millis(500);
/// Time limit if only the peak is requested, possibly for hundreds of cases.
const SHORT_PEAK_TIMEOUT: Duration = Duration::from_millis(50);
/// Directory of snapshots and pages in the run's folder.
const FOLDER: &str = "memory_profiler";
/// Marks of the two snapshots.
const BEFORE_MARK: &str = "before inference";
const AFTER_MARK: &str = "after inference";
/// Mark at the end of the pass that is divided into phases.
const END_MARK: &str = "end";

/// Inspection of memory usage.
#[derive(Default)]
pub(super) struct MemoryInspection {
    tracked_cases: Vec<TrackedCase>,
}

/// Inspected case. Its saving is computed after all cases were inspected.
struct TrackedCase {
    case: CaseId,
    timeline: Timeline,
    parts: Option<Timeline>,
    memory: PeakMemory,
}

impl Inspection for MemoryInspection {
    fn applies_to(&self, case: &Case, assignment: &Assignment) -> bool {
        (case.memory_profiler || case.peak_memory) && assignment.run_dir.is_some()
    }

    fn observes_this_process(&self) -> bool {
        true
    }

    fn needs_closed_workloads(&self) -> bool {
        true
    }

    fn inspect(
        &mut self,
        subject: &mut InspectedCase<'_>,
        group: &mut GroupContext<'_>,
    ) -> Result<Option<Facet>, Failure> {
        let record = subject.record;
        let timeline = record_timeline(subject.assigned, group)?;
        let parts = if record.case.memory_profiler { record_parts(subject.assigned, group) } else { Ok(None) };
        let no_phases = |why: Failure| subject.warnings.push(Warning::missing_phases(why));
        let parts = parts.map_err(no_phases).ok().flatten();
        let peaks = timeline.peaks();
        let memory = PeakMemory {
            peak_allocated: peaks.allocated,
            peak_active: peaks.active,
            peak_reserved: peaks.reserved,
            peak_above_inputs: peak_above_inputs(&group.operands.task, record, &timeline),
            bound: record_bound(peaks.bound),
            peak_at_most: timeline.ceiling.filter(|_| peaks.bound == TimelineBound::AtLeast),
            ..PeakMemory::default()
        };
        self.tracked_cases.push(TrackedCase { case: record.case.id.clone(), timeline, parts, memory });
        Ok(None)
    }

    fn failure_warning(&self, error: &Failure) -> Warning {
        Warning::missing_memory(error)
    }

    fn compare(&self, arms: &[CaseArm], assignment: &Assignment) -> Vec<InspectionFinding> {
        let Some(folder) = assignment.run_dir.as_deref() else { return Vec::new() };
        let finding = |CaseArm { record, assigned, .. }: &CaseArm| {
            let TrackedCase { case, timeline: own, parts, memory } = self.find(&record.case.id)?;
            // Figures from different sources are not comparable.
            let source = |timeline: &Timeline| (timeline.source, timeline.pools.is_empty());
            let baseline = assigned.baseline.as_ref().and_then(|id| Some((id, &self.find(id)?.timeline)));
            let baseline = baseline.filter(|(_, other)| source(other) == source(own));
            let saving = baseline.and_then(|(_, other)| memory_saving(other, own));
            let memory = PeakMemory {
                saving: saving.map(|(ratio, _)| ratio),
                saving_bound: saving.map(|(_, of)| record_bound(of)).unwrap_or_default(),
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
                let written =
                    write_profile(folder, case, &profiles, parts).map(|()| format!("{}/{}", FOLDER, file_name(case)));
                let failed = |error: Failure| warnings.push(Warning::missing_memory_profile(error));
                written.map_err(failed).ok()
            });
            let footprint = Footprint {
                peak_bytes: peak_in_use(&own.peaks()),
                memory: Some(Box::new(memory)),
                memory_profile: memory_profile.flatten(),
            };
            Some(InspectionFinding { case: case.clone(), facet: Some(Facet::Footprint(footprint)), warnings })
        };
        arms.iter().filter_map(finding).collect()
    }
}

impl MemoryInspection {
    fn find(&self, case: &CaseId) -> Option<&TrackedCase> {
        self.tracked_cases.iter().find(|followed| followed.case == *case)
    }
}

/// Ratio of the baseline's peak memory to that of the case; a lower bound if a peak is only bounded.
fn memory_saving(baseline: &Timeline, own: &Timeline) -> Option<(f64, TimelineBound)> {
    let (baseline_peaks, peaks) = (baseline.peaks(), own.peaks());
    let max = match peaks.bound {
        TimelineBound::Exact => peak_in_use(&peaks)?,
        TimelineBound::AtLeast => own.ceiling?,
        TimelineBound::Unknown => return None,
    };
    let bound = match (baseline_peaks.bound, peaks.bound) {
        (TimelineBound::Unknown, _) => return None,
        (TimelineBound::Exact, TimelineBound::Exact) => TimelineBound::Exact,
        _ => TimelineBound::AtLeast,
    };
    let ratio = peak_in_use(&baseline_peaks)? as f64 / max as f64;
    Some((ratio, bound)).filter(|(ratio, _)| ratio.is_finite() && *ratio > 0.0)
}

/// Peak of memory used by tensors; the peak of the device if there is no pool.
fn peak_in_use(peaks: &MemoryPeaks) -> Option<u64> {
    peaks.allocated.or(peaks.active).or(peaks.reserved)
}

/// Peak of memory used by tensors, excluding inputs and weights.
fn peak_above_inputs(task: &Task, record: &Record, timeline: &Timeline) -> Option<u64> {
    let inputs = match record.case.implementation {
        // Native workloads allocate their outputs when they are opened, before the first pass.
        Implementation::Native => input_bytes(task, record)?,
        _ => {
            let before = timeline.marks.iter().find(|mark| mark.name == BEFORE_MARK)?;
            timeline.snapshot(before.at_ns).allocated_bytes?
        }
    };
    peak_in_use(&timeline.peaks())?.checked_sub(inputs)
}

/// Bytes of inputs and weights as declared by the task; `None` if they need not be on the device.
fn input_bytes(task: &Task, record: &Record) -> Option<u64> {
    match task {
        Task::Model(problem) => {
            let (rows, cols) = problem.layout().input;
            Some(rows * cols * problem.dtype.bytes() + record.weights.weight_bytes?)
        }
        Task::Operator(problem) if problem.operator.is_transfer() => None,
        Task::Foreign(_) => None,
        Task::Operator(problem) => Some(problem.operator.inputs(&problem.spec).iter().map(Operand::bytes).sum()),
    }
}

/// Passes of an open workload. They set marks and repeat while the last argument returns true.
type WorkloadPasses<'a> =
    dyn FnMut(&mut dyn Workload, &mut dyn FnMut(&'static str), &dyn Fn() -> bool) -> Result<(), ZooError> + 'a;

/// Runs one pass whose outputs do not overlap in time with those of another.
fn run_pass(workload: &mut dyn Workload) -> Result<(), ZooError> {
    workload.free_outputs();
    workload.synchronize()?;
    workload.launch()?;
    workload.synchronize()
}

/// Records the memory of passes as they are timed.
fn record_timeline(assigned: &AssignedCase, group: &mut GroupContext<'_>) -> Result<Timeline, Failure> {
    let patience = if assigned.case.memory_profiler { PEAK_TIMEOUT } else { SHORT_PEAK_TIMEOUT };
    record_memory(assigned, group, patience, &mut |workload, mark, again| {
        mark(BEFORE_MARK);
        for name in PASSES {
            run_pass(workload)?;
            mark(name);
        }
        mark(AFTER_MARK);
        while again() {
            run_pass(workload)?;
        }
        Ok(())
    })
}

/// Records the memory of a pass that synchronizes between phases, which may change its peak. `None` if the task has a
/// single phase.
fn record_parts(assigned: &AssignedCase, group: &mut GroupContext<'_>) -> Result<Option<Timeline>, Failure> {
    let count = group.operands.task.parts().len();
    if count < 2 {
        return Ok(None);
    }
    // Allocated before the recording starts, so that it does not appear in the timeline.
    let (mut parts, mut ended) = (Vec::<PassPart>::with_capacity(count), Instant::now());
    let mut timeline = record_memory(assigned, group, Duration::ZERO, &mut |workload, mark, _| {
        run_pass(workload)?;
        parts.clear();
        parts = parts::record_parts(std::mem::take(&mut parts), || run_pass(workload))?;
        mark(END_MARK);
        ended = Instant::now();
        Ok(())
    })?;
    let end_ns = timeline.marks.last().map_or(timeline.end_ns, |end| end.at_ns);
    let start_ns = |part: &PassPart| end_ns.saturating_sub((ended - part.start).as_nanos() as u64);
    let parts = parts.iter().map(|part| TimelineMark { at_ns: start_ns(part), name: part.name.into() });
    timeline.marks.splice(0..0, parts);
    Ok(Some(timeline))
}

/// Opens the case, runs its passes and drops it.
fn record_memory(
    AssignedCase { case, spec, .. }: &AssignedCase,
    group: &mut GroupContext<'_>,
    patience: Duration,
    runs: &mut WorkloadPasses<'_>,
) -> Result<Timeline, Failure> {
    let (task, device) = (group.operands.task.clone(), group.operands.device);
    let memory = platforms::for_device(device).memory().ok_or("the device allocates no memory")?;
    let setup = Setup { implementation: case.implementation, device, sets: 1 };
    // Computed before the recording starts, because inputs are shared by all cases.
    let inputs = group.operands.timed_inputs();
    let machines = &mut group.context.machines;
    let mut run = |mark: &mut dyn FnMut(&'static str), again: &dyn Fn() -> bool| -> Result<(), ZooError> {
        let mut workload = task.open(inputs, &spec.treatment, Some(spec.variant), setup, machines)?;
        workload.synchronize()?;
        runs(workload.as_mut(), mark, again)
    };
    memory.record(setup, patience, &mut run)
}

/// Writes the snapshots and the page of a case: the baseline first, if any, and the pass divided into phases last.
fn write_profile(
    folder: &Path,
    id: &str,
    timelines: &[(String, &Timeline)],
    parts: Option<(String, &Timeline)>,
) -> Result<(), Failure> {
    let folder = folder.join(FOLDER).join(file_name(id));
    let Some((_, own)) = timelines.last() else { return Ok(()) };
    for (name, file) in [(BEFORE_MARK, "snapshot_before.json"), (AFTER_MARK, "snapshot_after.json")] {
        if let Some(mark) = own.marks.iter().find(|mark| mark.name == name) {
            let snapshot = serde_json::to_vec_pretty(&own.snapshot(mark.at_ns))?;
            atomic::write(&folder.join(file), &snapshot).map_err(|error| error.with_causes())?;
        }
    }
    let profiles: Vec<MemoryProfile> = timelines
        .iter()
        .enumerate()
        .map(|(index, (label, timeline))| page_profile(label, timeline, (index > 0).then_some(0)))
        .chain(parts.iter().map(|(label, timeline)| page_profile(label, timeline, None)))
        .collect();
    memory_page::write(&folder, id, &profiles).map_err(|error| error.with_causes())?;
    Ok(())
}

fn page_profile(label: &str, timeline: &Timeline, against: Option<usize>) -> MemoryProfile {
    let peaks = timeline.peaks();
    let peak_at_ns = timeline.peak_at_ns();
    let block = |block: LiveBlock| memory_page::MemoryBlock {
        address: block.address,
        bytes: block.bytes,
        since_ns: block.since_ns,
        what: block.what,
    };
    MemoryProfile {
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
            .map(|mark| memory_page::MemoryMark { at_ns: mark.at_ns, name: mark.name.to_string() })
            .collect(),
        peaks: memory_page::PeakBytes {
            allocated: peaks.allocated,
            active: peaks.active,
            reserved: peaks.reserved,
            bound: record_bound(peaks.bound),
        },
        peak_at_ns,
        blocks: peak_at_ns.map(|at| timeline.live_at(at).into_iter().map(block).collect()).unwrap_or_default(),
        notes: timeline.notes(),
    }
}

fn record_bound(bound: TimelineBound) -> record::PeakBound {
    match bound {
        TimelineBound::Exact => record::PeakBound::Exact,
        TimelineBound::AtLeast => record::PeakBound::AtLeast,
        TimelineBound::Unknown => record::PeakBound::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Status;
    use calorimeter_case::record::Weights;
    use calorimeter_recipes::{Dtype, Element};
    use calorimeter_shapes::Axes;
    use calorimeter_timing::memory::{MemoryEvent, MemorySource, PoolSample, TimelineMark};

    fn record(implementation: &str) -> Record {
        let case = Case { implementation: implementation.parse().unwrap(), ..Case::default() };
        Record { weights: Weights { weight_bytes: Some(0), ..Weights::default() }, ..Record::new(case, Status::Ok) }
    }

    fn task(name: &str, axes: &[(&str, u64)]) -> Task {
        let axes = Axes::new(axes.iter().map(|&(name, size)| (name.to_owned(), size))).unwrap();
        Task::new(name.parse().unwrap(), &axes, Element::Float(Dtype::F32), None, 42).unwrap()
    }

    fn mark(at_ns: u64) -> TimelineMark {
        TimelineMark { at_ns, name: BEFORE_MARK.into() }
    }

    fn pool(active: u64, ceiling: u64) -> Timeline {
        let sample = |at_ns, active| PoolSample { at_ns, allocated: active, active, reserved: 1 << 23 };
        let pools = vec![sample(1, 300), sample(2, active)];
        Timeline {
            pools,
            ceiling: Some(ceiling),
            marks: vec![mark(1)],
            ..Timeline::new(MemorySource::PoolStatistics, 3)
        }
    }

    #[test]
    fn native_outputs_count_above_inputs() {
        let taken = |at_ns, bytes| MemoryEvent { at_ns, address: at_ns << 20, bytes, freed: false, what: None };
        let stream = task("stream_add", &[("elements", 1000)]);
        for source in [MemorySource::Cupti, MemorySource::HostAllocator] {
            let events = vec![taken(1, 4000), taken(2, 4000), taken(3, 4000)];
            let timeline = Timeline { events, marks: vec![mark(4)], ..Timeline::new(source, 5) };
            assert_eq!(peak_above_inputs(&stream, &record("native"), &timeline), Some(4000));
        }
    }

    #[test]
    fn allocations_of_passes_count_above_inputs() {
        let stream = task("stream_add", &[("elements", 1000)]);
        assert_eq!(peak_above_inputs(&stream, &record("eager"), &pool(1000, 1000)), Some(700));
    }

    #[test]
    fn saving_of_bounded_peaks_is_a_bound() {
        assert_eq!(memory_saving(&pool(1000, 1000), &pool(400, 400)), Some((2.5, TimelineBound::Exact)));
        assert_eq!(memory_saving(&pool(1000, 1020), &pool(400, 400)), Some((2.5, TimelineBound::AtLeast)));
        assert_eq!(memory_saving(&pool(1000, 1000), &pool(400, 800)), Some((1.25, TimelineBound::AtLeast)));
    }
}
