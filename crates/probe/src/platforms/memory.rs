//! Recording of the memory of a case during some of its passes.

use calorimeter_timing::Failure;
use calorimeter_timing::memory::{MemorySource, PoolSample, Recording, Timeline, TimelineMark};
use calorimeter_zoo::backends::{PoolQuery, PoolUsage, empty_pool, pool_query, share_blocks};
use calorimeter_zoo::{Device, ZooError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Passes of a case. They set marks through the first argument and repeat while the second returns true.
pub type TrackedPasses<'a> = dyn FnMut(&mut dyn FnMut(&'static str), &dyn Fn() -> bool) -> Result<(), ZooError> + 'a;

/// Records a run through the counting allocator of this process.
pub fn record_allocator(run: &mut TrackedPasses<'_>) -> Result<Timeline, Failure> {
    let mut recording = Recording::start()?;
    let ran = run(&mut |name| recording.mark(name), &|| false);
    let timeline = recording.finish();
    ran?;
    Ok(timeline)
}

fn require_pool_query(device: Device) -> Result<PoolQuery, Failure> {
    pool_query(device).ok_or_else(|| "the device's pool has no statistics".into())
}

/// Upper bound of a run's memory in use. Without block sharing, a pool holds for each size the maximum number of blocks
/// in use. The true peak is lower if sizes alternate.
fn peak_ceiling(device: Device, run: &mut TrackedPasses<'_>) -> Result<u64, Failure> {
    let ask = require_pool_query(device)?;
    let reserved = || ask().map(|usage| usage.reserved).ok_or("the device's pool returned no statistics");
    empty_pool(device)?;
    let before = reserved()?;
    share_blocks(device, false)?;
    let ran = run(&mut |_| (), &|| false);
    let held = reserved();
    let shared = share_blocks(device, true).and_then(|()| empty_pool(device));
    ran?;
    shared?;
    Ok(held?.saturating_sub(before))
}

/// End of a recording: when usage reaches the upper bound, or after a timeout.
#[derive(Debug, Clone, Copy)]
pub struct RecordingLimit {
    ceiling: u64,
    timeout: Duration,
}

/// Measures the upper bound of a run's memory for a recording.
pub fn recording_limit(
    device: Device,
    patience: Duration,
    run: &mut TrackedPasses<'_>,
) -> Result<RecordingLimit, Failure> {
    Ok(RecordingLimit { ceiling: peak_ceiling(device, run)?, timeout: patience })
}

/// Records a run through the statistics of burn's pool.
pub fn record_pool(device: Device, until: RecordingLimit, run: &mut TrackedPasses<'_>) -> Result<Timeline, Failure> {
    let (start, ask) = (Instant::now(), require_pool_query(device)?);
    let since = TimelineStart { start, before: ask().unwrap_or_default() };
    let (mut marks, mut marked) = (Vec::new(), Vec::new());
    // Marks take their own samples, because the sampling thread may store a sample late.
    let mut mark = |name: &'static str| {
        let sample = since.sample(&ask);
        marks.push(TimelineMark { at_ns: sample.map_or(since.now(), |sample| sample.at_ns), name: name.into() });
        marked.extend(sample);
    };
    let highest = AtomicU64::new(0);
    let again = || highest.load(Ordering::Relaxed) < until.ceiling && start.elapsed() < until.timeout;
    let mut pools = sample_pool(require_pool_query(device)?, since, &highest, || run(&mut mark, &again))?;
    pools.append(&mut marked);
    pools.sort_by_key(|sample| sample.at_ns);
    Ok(Timeline {
        marks,
        pools,
        ceiling: Some(until.ceiling),
        ..Timeline::new(MemorySource::PoolStatistics, since.now())
    })
}

/// Start of a timeline. Memory in use at the start is subtracted; memory reserved by the pool is not, because the run
/// may use it.
#[derive(Clone, Copy)]
struct TimelineStart {
    start: Instant,
    before: PoolUsage,
}

impl TimelineStart {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn sample(&self, ask: &dyn Fn() -> Option<PoolUsage>) -> Option<PoolSample> {
        let PoolUsage { allocated, active, reserved } = ask()?;
        Some(PoolSample {
            at_ns: self.now(),
            allocated: allocated.saturating_sub(self.before.allocated),
            active: active.saturating_sub(self.before.active),
            reserved,
        })
    }
}

/// Samples the pool continuously during a run and updates the maximum in use.
fn sample_pool(
    ask: PoolQuery,
    since: TimelineStart,
    highest: &AtomicU64,
    run: impl FnOnce() -> Result<(), ZooError>,
) -> Result<Vec<PoolSample>, Failure> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        let sample_until_done = move || {
            let mut samples: Vec<PoolSample> = Vec::new();
            loop {
                let last = done.load(Ordering::Acquire);
                if let Some(sample) = since.sample(&ask) {
                    highest.fetch_max(sample.active, Ordering::Relaxed);
                    // Unchanged samples are skipped.
                    let same = |other: &PoolSample| PoolSample { at_ns: sample.at_ns, ..*other } == sample;
                    if last || !samples.last().is_some_and(same) {
                        samples.push(sample);
                    }
                }
                if last {
                    return samples;
                }
                // No sleep: the device thread answers between two operations, and those of a pass are enqueued quickly.
                std::thread::yield_now();
            }
        };
        let refused = |error| Failure::from(format!("cannot start the pool sampling thread: {error}"));
        let sampler = std::thread::Builder::new().spawn_scoped(scope, sample_until_done).map_err(refused)?;
        let ran = run();
        done.store(true, Ordering::Release);
        let samples = sampler.join().map_err(|_| Failure::from("the pool sampling thread panicked"))?;
        ran?;
        Ok(samples)
    })
}
