//! The memory of a case, followed through some of its passes.

use calorimeter_timing::Failure;
use calorimeter_timing::memory::{Mark, PoolSample, Recording, Source, Timeline};
use calorimeter_zoo::backends::{Ask, PoolUsage, empty_pool, pool, share_blocks};
use calorimeter_zoo::{Device, ZooError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Some passes of a case that mark their moments, and go on for as long as they are told to.
pub type Passes<'a> = dyn FnMut(&mut dyn FnMut(&'static str), &dyn Fn() -> bool) -> Result<(), ZooError> + 'a;

/// Follows a run through the allocator of this process.
pub fn from_the_allocator(run: &mut Passes<'_>) -> Result<Timeline, Failure> {
    let mut recording = Recording::start()?;
    let ran = run(&mut |name| recording.mark(name), &|| false);
    let timeline = recording.finish();
    ran?;
    Ok(timeline)
}

fn asker(device: Device) -> Result<Ask, Failure> {
    pool(device).ok_or_else(|| "the device's pool cannot be asked".into())
}

/// The most that a run can have in use. A pool that gives no block to tensors of another size holds, of each size, as many
/// blocks as were ever in use together; the true peak is less where sizes take turns.
fn ceiling(device: Device, run: &mut Passes<'_>) -> Result<u64, Failure> {
    let ask = asker(device)?;
    let reserved = || ask().map(|usage| usage.reserved).ok_or("the device's pool did not answer");
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

/// When a run that is followed may end: at the most that it can have in use, or when it has gone on for long enough.
#[derive(Debug, Clone, Copy)]
pub struct Until {
    ceiling: u64,
    patience: Duration,
}

/// Finds the most that a run can have in use, and waits for it for no longer than this.
pub fn until(device: Device, patience: Duration, run: &mut Passes<'_>) -> Result<Until, Failure> {
    Ok(Until { ceiling: ceiling(device, run)?, patience })
}

/// Follows a run through the figures of burn's pool.
pub fn from_the_pool(device: Device, until: Until, run: &mut Passes<'_>) -> Result<Timeline, Failure> {
    let (begun, ask) = (Instant::now(), asker(device)?);
    let since = Since { begun, before: ask().unwrap_or_default() };
    let (mut marks, mut marked) = (Vec::new(), Vec::new());
    // An answer that the sampling thread was late to write down must not come between a mark and its own sample.
    let mut mark = |name: &'static str| {
        let sample = since.sample(&ask);
        marks.push(Mark { at_ns: sample.map_or(since.now(), |sample| sample.at_ns), name: name.into() });
        marked.extend(sample);
    };
    let highest = AtomicU64::new(0);
    let again = || highest.load(Ordering::Relaxed) < until.ceiling && begun.elapsed() < until.patience;
    let mut pools = sampling(asker(device)?, since, &highest, || run(&mut mark, &again))?;
    pools.append(&mut marked);
    pools.sort_by_key(|sample| sample.at_ns);
    Ok(Timeline { marks, pools, ceiling: Some(until.ceiling), ..Timeline::new(Source::PoolStatistics, since.now()) })
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
        let PoolUsage { allocated, active, reserved } = ask()?;
        Some(PoolSample {
            at_ns: self.now(),
            allocated: allocated.saturating_sub(self.before.allocated),
            active: active.saturating_sub(self.before.active),
            reserved,
        })
    }
}

/// Asks the pool again and again while something runs, and tells meanwhile the most that it has handed out.
fn sampling(
    ask: Ask,
    since: Since,
    highest: &AtomicU64,
    run: impl FnOnce() -> Result<(), ZooError>,
) -> Result<Vec<PoolSample>, Failure> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        let ask_on = move || {
            let mut samples: Vec<PoolSample> = Vec::new();
            loop {
                let last = done.load(Ordering::Acquire);
                if let Some(sample) = since.sample(&ask) {
                    highest.fetch_max(sample.active, Ordering::Relaxed);
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
        };
        let refused = |error| Failure::from(format!("no thread can be had that asks the pool: {error}"));
        let asking = std::thread::Builder::new().spawn_scoped(scope, ask_on).map_err(refused)?;
        let ran = run();
        done.store(true, Ordering::Release);
        let samples = asking.join().map_err(|_| Failure::from("the thread that asks the pool panicked"))?;
        ran?;
        Ok(samples)
    })
}
