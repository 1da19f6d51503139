//! Traits of works and stopwatches.

use crate::Failure;
use calorimeter_case::{Clock, Warning};
use std::time::{Duration, Instant};

/// Work that can be launched repeatedly and then synchronized.
pub trait Work: Send {
    /// Enqueues one launch; on an asynchronous device it may still be pending on return.
    fn launch(&mut self) -> Result<(), Failure>;
    /// Waits until all launches have completed.
    fn synchronize(&mut self) -> Result<(), Failure>;
    /// Runs launches in another process and returns their duration in nanoseconds, as measured there by a kind of clock.
    /// `None` if this process runs the launches.
    fn time_remotely(&mut self, _launches: u32, _clock: Clock) -> Result<Option<u64>, Failure> {
        Ok(None)
    }
    /// Runs launches in another process and returns the names and calls of the kernels that its device executed, as
    /// recorded there.
    fn trace_remotely(&mut self, _launches: u32) -> Result<Vec<(String, u64)>, Failure> {
        Err("this process runs the launches".into())
    }
}

/// Duration of a window, available now or after synchronization.
#[non_exhaustive]
pub enum Reading {
    /// Duration in nanoseconds.
    Ready(u64),
    /// Query to be made after the window, outside the timed path.
    Pending(Box<dyn FnOnce() -> Result<u64, Failure>>),
}

impl Reading {
    /// Returns the duration in nanoseconds, waiting for the device if necessary.
    pub fn resolve(self) -> Result<u64, Failure> {
        match self {
            Self::Ready(nanos) => Ok(nanos),
            Self::Pending(ask) => ask(),
        }
    }
}

/// Fixed cost of windows besides their launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overhead {
    /// No fixed cost: the window is bracketed on the device, or its cost is far below the resolution.
    Excluded,
    /// Each window contains a synchronization: windows of several lengths are measured and the fixed part is removed.
    Included,
}

/// Clock that times windows of launches.
pub trait Stopwatch {
    /// Name stored with every time read from it.
    fn name(&self) -> &'static str;

    /// Fixed cost of the windows.
    fn overhead(&self) -> Overhead;

    /// Times a window: opens it, enqueues the launches, closes it. The duration may be available only later.
    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure>;

    /// Times windows with these numbers of launches, back to back if the clock supports it, so that the device does not
    /// idle between them.
    fn windows(&mut self, work: &mut dyn Work, launches: &[u32]) -> Result<Vec<u64>, Failure> {
        launches.iter().map(|&launches| self.window(work, launches)?.resolve()).collect()
    }

    /// Runs launches at the pace of a window; steps needed only for timing may be omitted.
    fn load(&mut self, work: &mut dyn Work, launches: u32) -> Result<(), Failure> {
        self.window(work, launches)?.resolve().map(|_| ())
    }

    /// True if times include the gaps in which the device waits between kernels.
    fn includes_gaps(&self) -> bool {
        false
    }

    /// Unit of the number of launches: each window must hold a multiple of it.
    fn launch_multiple(&self) -> u32 {
        1
    }

    /// Minimum duration of a window by the host's clock, if opening and closing a window idles the device for a while.
    /// Clocks would rise in the pauses, and power-limited work would seem faster than it is.
    fn min_window(&self) -> Duration {
        Duration::ZERO
    }

    /// Call time of each of some synchronized launches, and its time on the device if available.
    fn launch_spans(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<LaunchSpan>, Failure> {
        let called = time_calls(work, launches)?;
        Ok(called.into_iter().map(|host| LaunchSpan { host, device: None }).collect())
    }

    /// Measures the resolution of the stopwatch.
    fn resolution(&mut self, work: &mut dyn Work) -> Result<ClockResolution, Failure> {
        const EMPTY_WINDOWS: usize = 64;
        let empty: Result<Vec<u64>, Failure> = (0..EMPTY_WINDOWS).map(|_| self.window(work, 0)?.resolve()).collect();
        Ok(ClockResolution::from_empty_windows(empty?))
    }

    /// Warning for readers of the times, available after windows have been measured.
    fn warning(&self) -> Option<Warning> {
        None
    }

    /// Kernels that the clock sees, if it reports them.
    fn kernel_tracing(&mut self) -> Option<&mut dyn KernelTracing> {
        None
    }

    /// Time since a fixed moment, for time limits: the host's clock unless the stopwatch is scripted.
    fn now(&self) -> Duration {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// Capability of a stopwatch that reports kernels. Times of such a stopwatch exclude the gaps between kernels.
pub trait KernelTracing {
    /// Kernels run by a number of launches: names and calls, longest total first.
    fn kernel_calls(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<(String, u64)>, Failure>;

    /// Durations of the last windows from the first to the last work on the device, including the gaps.
    fn window_spans(&self) -> &[u64];
}

/// Start of each launch call, and the duration of the call including synchronization.
pub(crate) fn time_calls(work: &mut dyn Work, launches: u32) -> Result<Vec<(u64, u64)>, Failure> {
    let begun = Instant::now();
    let mut spans = Vec::with_capacity(launches as usize);
    for _ in 0..launches {
        let start = begun.elapsed();
        work.launch()?;
        work.synchronize()?;
        spans.push((start.as_nanos() as u64, (begun.elapsed() - start).as_nanos() as u64));
    }
    Ok(spans)
}

/// Launch on the time axes of the host and the device: start and duration in nanoseconds. Both axes begin at the
/// first launch, but may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchSpan {
    /// Call on the host, including synchronization if the device is not visible.
    pub host: (u64, u64),
    /// Execution on the device.
    pub device: Option<(u64, u64)>,
}

/// Measured resolution of a stopwatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockResolution {
    /// Smallest nonzero difference between two empty windows, or between windows of at most one launch if all empty
    /// windows read the same.
    pub step_ns: u64,
    /// Median duration of an empty window.
    pub empty_ns: u64,
}

impl ClockResolution {
    /// Computes the resolution from the durations of empty windows.
    pub fn from_empty_windows(mut empty: Vec<u64>) -> Self {
        empty.sort_unstable();
        let step_ns = empty.windows(2).map(|pair| pair[1] - pair[0]).filter(|&step| step > 0).min().unwrap_or(1);
        Self { step_ns, empty_ns: empty.get(empty.len() / 2).copied().unwrap_or(0) }
    }

    /// Measures the resolution with windows of one launch besides empty ones, for a clock whose empty windows all read
    /// the same. Long launches do not need a fine clock; two windows suffice.
    pub(crate) fn from_launches(mut window: impl FnMut(u32) -> Result<u64, Failure>) -> Result<Self, Failure> {
        const SINGLE_LAUNCHES: usize = 64;
        const EMPTY_WINDOWS: usize = 8;
        const LONG_ENOUGH: Duration = Duration::from_millis(40);
        let begun = Instant::now();
        let mut single = Vec::with_capacity(SINGLE_LAUNCHES);
        while single.len() < 2 || (single.len() < SINGLE_LAUNCHES && begun.elapsed() < LONG_ENOUGH) {
            single.push(window(1)?);
        }
        let empty: Vec<u64> = (0..EMPTY_WINDOWS).map(|_| window(0)).collect::<Result<_, Failure>>()?;
        let empty_ns = Self::from_empty_windows(empty.clone()).empty_ns;
        Ok(Self { empty_ns, ..Self::from_empty_windows([single, empty].concat()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_follows_from_single_launches() {
        for (launches, step_ns) in [([1200, 1240, 1400], 40), ([1200, 1200, 1200], 1200)] {
            let mut next = launches.into_iter().cycle();
            let window = |launches| Ok(if launches == 0 { 0 } else { next.next().unwrap() });
            assert_eq!(ClockResolution::from_launches(window).unwrap(), ClockResolution { step_ns, empty_ns: 0 });
        }
    }
}
