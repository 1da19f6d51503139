//! Trace of a measured case: additional launches with everything recorded that the platform supports.

use super::finding::Facet;
use super::inspection::{InspectedCase, Inspection};
use crate::worker::event::TracedKernels;
use crate::worker::group_context::GroupContext;
use crate::worker::protocol::Assignment;
use calorimeter_case::record::{KernelShare, Profile};
use calorimeter_case::{Case, Warning};
use calorimeter_sinks::cache::file_name;
use calorimeter_timing::trace::{KernelRow, Span, Trace, Track};
use calorimeter_timing::{Failure, LaunchSpan, Work};
use calorimeter_zoo::parts::record_parts;
use std::path::Path;
use std::time::Instant;

/// Launches in a trace.
const TRACED_LAUNCHES: u32 = 20;
/// Gap in a trace between the launches and the pass divided into phases, if no device clock relates the two.
const PHASES_GAP_NS: u64 = 10_000;
/// Directory of traces in the run's folder.
const FOLDER: &str = "traces";

/// Inspection that writes traces.
pub(super) struct TraceInspection;

impl Inspection for TraceInspection {
    fn applies_to(&self, case: &Case, assignment: &Assignment) -> bool {
        case.profiler && assignment.run_dir.is_some()
    }

    fn observes_this_process(&self) -> bool {
        true
    }

    fn inspect(
        &mut self,
        subject: &mut InspectedCase<'_>,
        group: &mut GroupContext<'_>,
    ) -> Result<Option<Facet>, Failure> {
        let Some(folder) = &group.assignment.run_dir else { return Ok(None) };
        let has_parts = group.operands.task.parts().len() > 1;
        Ok(Some(Facet::Trace(write_trace(subject, folder, has_parts)?)))
    }

    fn failure_warning(&self, error: &Failure) -> Warning {
        Warning::missing_trace(error)
    }
}

fn write_trace(one: &mut InspectedCase<'_>, folder: &Path, has_parts: bool) -> Result<Profile, Failure> {
    let mut trace = Trace::new(&*one.record.case.id);
    let recorded = record_kernels(one, &mut trace)?;
    if !recorded {
        add_launches(one, &mut trace)?;
    }
    let rows = match &one.assigned.kernels {
        Some(traced) => add_traced_kernels(traced, &mut trace),
        None => trace.kernel_table(),
    };
    if has_parts && recorded {
        record_kernels_of_parts(one, &mut trace)?;
    } else if has_parts {
        let (start, offset) = (Instant::now(), trace.end_ns() + PHASES_GAP_NS);
        let parts = trace_parts(one, || offset + start.elapsed().as_nanos() as u64)?;
        parts.into_iter().for_each(|part| trace.add_span(part));
    }
    let passes = one.assigned.kernels.as_ref().map_or(TRACED_LAUNCHES, |traced| traced.passes);
    let relative = format!("{}/{}.json", FOLDER, file_name(&one.record.case.id));
    std::fs::create_dir_all(folder.join(FOLDER))?;
    trace.save(&folder.join(&relative))?;
    let row = |row: KernelRow| KernelShare {
        name: row.name.to_string(),
        calls: row.calls as f64 / f64::from(passes),
        nanos: row.total_ns as f64 / f64::from(passes),
        share: row.share,
    };
    Ok(Profile { kernels: rows.into_iter().map(row).collect(), trace: Some(relative) })
}

/// Adds launches on the host and on the device, as far as the stopwatch reports them.
fn add_launches(one: &mut InspectedCase<'_>, trace: &mut Trace) -> Result<(), Failure> {
    let name = format!("{} {}", one.record.case.workload, one.record.case.recipe);
    for (index, LaunchSpan { host, device }) in
        one.stopwatch.launch_spans(one.job, TRACED_LAUNCHES)?.into_iter().enumerate()
    {
        let (correlation, index) = (device.map(|_| index as u32), index + 1);
        let called = Track::Host("main".into());
        trace.add_span(span(called, format!("launch {index}"), host, correlation));
        if let Some(device) = device {
            trace.add_span(span(Track::Device("queue".into()), name.clone(), device, correlation));
        }
    }
    Ok(())
}

/// Spans of the phases of one more launch, with synchronization between them.
fn trace_parts(one: &mut InspectedCase<'_>, now: impl Fn() -> u64) -> Result<Vec<Span>, Failure> {
    let parts = record_parts(Vec::new(), || -> Result<(), Failure> {
        one.job.launch()?;
        one.job.synchronize()
    })?;
    let (ended, end_ns) = (Instant::now(), now());
    let begins = parts.iter().map(|part| end_ns.saturating_sub((ended - part.start).as_nanos() as u64));
    let begins: Vec<u64> = begins.collect();
    let ends = begins.iter().copied().skip(1).chain([end_ns]);
    let times = begins.iter().zip(ends).map(|(&begin, end)| (begin, end - begin));
    let track = Track::Host("phases of one more launch, each synchronized".into());
    Ok(parts.iter().zip(times).map(|(part, times)| span(track.clone(), part.name.to_owned(), times, None)).collect())
}

/// Adds the kernels traced by another worker end to end: durations are known, start times are not.
fn add_traced_kernels(traced: &TracedKernels, trace: &mut Trace) -> Vec<KernelRow> {
    let mut isolated = Trace::new("");
    let mut start_ns = 0;
    for (name, nanos) in &traced.kernels {
        let track = Track::Device("kernels one by one, without gaps".into());
        let kernel = span(track, name.clone(), (start_ns, *nanos), None);
        start_ns += nanos;
        trace.add_span(kernel.clone());
        isolated.add_span(kernel);
    }
    isolated.kernel_table()
}

fn span(track: Track, name: String, (start_ns, nanos): (u64, u64), correlation: Option<u32>) -> Span {
    Span { track, name: name.into(), start_ns, nanos, correlation, args: vec![] }
}

/// Records every kernel, copy and driver call; returns false if the platform has no such records.
#[cfg(feature = "native")]
fn record_kernels(one: &mut InspectedCase<'_>, trace: &mut Trace) -> Result<bool, Failure> {
    use calorimeter_timing::cuda::Cupti;
    if one.record.case.device.kind() != calorimeter_case::DeviceKind::Cuda {
        return Ok(false);
    }
    let cupti = match Cupti::load() {
        Ok(cupti) => cupti,
        Err(why) => {
            one.warnings.push(Warning::trace_of_launches(why));
            return Ok(false);
        }
    };
    one.job.synchronize()?;
    let host = |name: String, start: u64| span(Track::Host("main".into()), name, (start, cupti.now() - start), None);
    record_activity(cupti, trace, || {
        let mut spans = Vec::new();
        for index in 1..=TRACED_LAUNCHES {
            let start = cupti.now();
            one.job.launch()?;
            spans.push(host(format!("launch {index}"), start));
        }
        let start = cupti.now();
        one.job.synchronize()?;
        spans.push(host("wait".to_owned(), start));
        Ok(spans)
    })?;
    Ok(true)
}

/// Records the phases of one more launch with its kernels, copies and driver calls.
#[cfg(feature = "native")]
fn record_kernels_of_parts(one: &mut InspectedCase<'_>, trace: &mut Trace) -> Result<(), Failure> {
    let cupti = calorimeter_timing::cuda::Cupti::load()?;
    record_activity(cupti, trace, || trace_parts(one, || cupti.now()))
}

/// Adds the activity of `run` on the device to a trace, with the spans that it returns.
#[cfg(feature = "native")]
fn record_activity(
    cupti: &calorimeter_timing::cuda::Cupti,
    trace: &mut Trace,
    run: impl FnOnce() -> Result<Vec<Span>, Failure>,
) -> Result<(), Failure> {
    let (spans, activity) = cupti.record(calorimeter_timing::cuda::ActivityKinds::ALL, run)?;
    if activity.dropped > 0 {
        return Err(format!("{} kernels were not recorded", activity.dropped).into());
    }
    spans.into_iter().for_each(|span| trace.add_span(span));
    for call in activity.calls {
        let track = Track::Host(format!("driver calls of thread {}", call.thread).into());
        let times = (call.start_ns, call.end_ns.saturating_sub(call.start_ns));
        trace.add_span(span(track, call.name.to_string(), times, Some(call.correlation)));
    }
    for kernel in activity.kernels {
        let track = Track::Device(format!("stream {}", kernel.stream).into());
        let times = (kernel.start_ns, kernel.end_ns.saturating_sub(kernel.start_ns));
        trace.add_span(span(track, kernel.name.to_string(), times, Some(kernel.correlation)));
    }
    for copy in activity.copies {
        let track = Track::Device(format!("stream {}", copy.stream).into());
        let times = (copy.start_ns, copy.end_ns.saturating_sub(copy.start_ns));
        let args = vec![("bytes".to_owned(), copy.bytes.to_string())];
        trace.add_span(Span { args, ..span(track, copy.what.to_owned(), times, None) });
    }
    Ok(())
}

#[cfg(not(feature = "native"))]
fn record_kernels(_: &mut InspectedCase<'_>, _: &mut Trace) -> Result<bool, Failure> {
    Ok(false)
}

#[cfg(not(feature = "native"))]
fn record_kernels_of_parts(_: &mut InspectedCase<'_>, _: &mut Trace) -> Result<(), Failure> {
    Ok(())
}
