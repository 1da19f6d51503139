//! Works and stopwatches.

use crate::Failure;
use std::time::{Duration, Instant};

/// Something that can be launched many times in a row and then waited for.
pub trait Work: Send {
    /// Enqueues one launch; on an asynchronous device it need not have run when this returns.
    fn launch(&mut self) -> Result<(), Failure>;
    /// Waits until everything launched has run.
    fn settle(&mut self) -> Result<(), Failure>;
}

/// A window's duration, known now or once the device has caught up.
#[non_exhaustive]
pub enum Reading {
    /// The duration in nanoseconds.
    Now(u64),
    /// A question to ask after the window, outside the timed path.
    Later(Box<dyn FnOnce() -> Result<u64, Failure>>),
}

impl Reading {
    /// The duration in nanoseconds, waiting for the device if need be.
    pub fn resolve(self) -> Result<u64, Failure> {
        match self {
            Self::Now(nanos) => Ok(nanos),
            Self::Later(ask) => ask(),
        }
    }
}

/// Whether a window's duration holds a fixed cost besides its launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overhead {
    /// The window is bracketed on the device, or its own cost is far below its granularity.
    Outside,
    /// Every window pays for a synchronization: windows of several lengths are measured and the fixed part is removed.
    Inside,
}

/// Times windows of launches.
pub trait Stopwatch {
    /// The name stored with every number read from it.
    fn name(&self) -> &'static str;

    /// Whether windows carry a fixed cost.
    fn overhead(&self) -> Overhead;

    /// Opens a window, enqueues the launches, closes it. What it took may be known only later.
    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure>;

    /// Times windows of so many launches each, one straight after the other where the clock can do that, so that the device
    /// has no rest between them.
    fn windows(&mut self, work: &mut dyn Work, launches: &[u32]) -> Result<Vec<u64>, Failure> {
        launches.iter().map(|&launches| self.window(work, launches)?.resolve()).collect()
    }

    /// Goes through so many launches at the pace of a window. What only times them may be left out.
    fn load(&mut self, work: &mut dyn Work, launches: u32) -> Result<(), Failure> {
        self.window(work, launches)?.resolve().map(|_| ())
    }

    /// How long each of the windows that were asked for last took from its first work on the device to its last, with the gaps
    /// in between that its own figure leaves out. Empty where that figure holds them.
    fn spans_of_windows(&self) -> &[u64] {
        &[]
    }

    /// Whether its figure holds the gaps in which a device waits between one kernel and the next.
    fn holds_gaps(&self) -> bool {
        false
    }

    /// The number of launches in a window is a multiple of this.
    fn unit(&self) -> u32 {
        1
    }

    /// A window lasts at least this long by the host's clock, where opening and closing one leaves the device idle for a while: clocks would
    /// rise in the pauses, and work that is limited by power would seem faster than it is.
    fn least_window(&self) -> Duration {
        Duration::ZERO
    }

    /// What runs on the device in that many launches: names with the number of their calls, the longest first. `None`
    /// where the clock does not see kernels.
    fn ran(&mut self, _work: &mut dyn Work, _launches: u32) -> Result<Option<Vec<(String, u64)>>, Failure> {
        Ok(None)
    }

    /// When each of some launches was called, each waited for, and when it ran on the device if that is seen.
    fn spans(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<LaunchSpan>, Failure> {
        let called = called(work, launches)?;
        Ok(called.into_iter().map(|host| LaunchSpan { host, device: None }).collect())
    }

    /// What the stopwatch can tell apart, measured.
    fn granularity(&mut self, work: &mut dyn Work) -> Result<Granularity, Failure> {
        const EMPTY_WINDOWS: usize = 64;
        let empty: Result<Vec<u64>, Failure> = (0..EMPTY_WINDOWS).map(|_| self.window(work, 0)?.resolve()).collect();
        Ok(Granularity::of(empty?))
    }

    /// What a reader of its times should know, once windows have been measured.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Time since a fixed moment, for budgets: the host's clock, unless the stopwatch is scripted.
    fn now(&self) -> Duration {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// When each launch was called and how long the call and the wait for its end took.
pub(crate) fn called(work: &mut dyn Work, launches: u32) -> Result<Vec<(u64, u64)>, Failure> {
    let begun = Instant::now();
    let mut spans = Vec::with_capacity(launches as usize);
    for _ in 0..launches {
        let start = begun.elapsed();
        work.launch()?;
        work.settle()?;
        spans.push((start.as_nanos() as u64, (begun.elapsed() - start).as_nanos() as u64));
    }
    Ok(spans)
}

/// One launch on the time axes of the host and the device: start and duration in nanoseconds. The two axes begin at the
/// first launch, and need not be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchSpan {
    /// The call, and the wait for it if the device is not seen.
    pub host: (u64, u64),
    /// The work.
    pub device: Option<(u64, u64)>,
}

/// What a stopwatch can tell apart, measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granularity {
    /// The smallest difference that is not zero between two empty windows, or between windows of at most one launch where
    /// empty ones all read the same.
    pub step_ns: u64,
    /// The median duration of an empty window.
    pub empty_ns: u64,
}

impl Granularity {
    /// From the durations of empty windows.
    pub fn of(mut empty: Vec<u64>) -> Self {
        empty.sort_unstable();
        let step_ns = empty.windows(2).map(|pair| pair[1] - pair[0]).filter(|&step| step > 0).min().unwrap_or(1);
        Self { step_ns, empty_ns: empty.get(empty.len() / 2).copied().unwrap_or(0) }
    }

    /// From windows of one launch besides empty ones, for a clock whose empty windows all read the same. Long launches
    /// have no need of a fine clock: two windows of them do.
    #[cfg(any(test, feature = "cubecl", feature = "cuda"))]
    pub(crate) fn by_launches(mut window: impl FnMut(u32) -> Result<u64, Failure>) -> Result<Self, Failure> {
        const SINGLE_LAUNCHES: usize = 64;
        const EMPTY_WINDOWS: usize = 8;
        const LONG_ENOUGH: Duration = Duration::from_millis(40);
        let begun = Instant::now();
        let mut single = Vec::with_capacity(SINGLE_LAUNCHES);
        while single.len() < 2 || (single.len() < SINGLE_LAUNCHES && begun.elapsed() < LONG_ENOUGH) {
            single.push(window(1)?);
        }
        let empty: Vec<u64> = (0..EMPTY_WINDOWS).map(|_| window(0)).collect::<Result<_, Failure>>()?;
        let empty_ns = Self::of(empty.clone()).empty_ns;
        Ok(Self { empty_ns, ..Self::of([single, empty].concat()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_reads_empty_windows_as_zero_shows_its_step_in_launches() {
        for (launches, step_ns) in [([1200, 1240, 1400], 40), ([1200, 1200, 1200], 1200)] {
            let mut next = launches.into_iter().cycle();
            let window = |launches| Ok(if launches == 0 { 0 } else { next.next().unwrap() });
            assert_eq!(Granularity::by_launches(window).unwrap(), Granularity { step_ns, empty_ns: 0 });
        }
    }
}
