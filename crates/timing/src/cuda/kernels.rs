//! CUPTI kernel clock: device time of everything the work launches, on any stream.

use super::{Activities, ActivityKinds, Cupti, KernelTotal};
use crate::{ClockResolution, Failure, KernelTracing, Overhead, Reading, Stopwatch, Work};
use calorimeter_case::Warning;
use std::time::Duration;

/// Clock that measures the time in which at least one kernel, copy or memset of a window was running. Overlapping
/// kernels count once, and gaps are excluded.
///
/// Records are enabled when a window opens and disabled when it closes. Leaving them enabled would save a few calls per
/// window outside the timed part. But every launch of a process pays for enabled records, in host time and with a
/// timestamp before and after each kernel. Arms that are interleaved with this one and timed by events, graphs or the
/// wall clock would seem slower.
pub struct KernelClock {
    cupti: &'static Cupti,
    spans: Vec<u64>,
    /// Bursts of windows that could not be recorded as one.
    interrupted_bursts: u32,
}

impl KernelClock {
    /// Creates a clock that reads these records.
    pub fn new(cupti: &'static Cupti) -> Self {
        Self { cupti, spans: Vec::new(), interrupted_bursts: 0 }
    }

    /// Kernels run by a number of launches, longest total first.
    pub fn kernels(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<KernelTotal>, Failure> {
        Ok(self.activities(work, launches)?.totals())
    }

    fn activities(&self, work: &mut dyn Work, launches: u32) -> Result<Activities, Failure> {
        // Earlier launches must not run into the window.
        work.synchronize()?;
        let ((), activities) = self.cupti.record(ActivityKinds::DEVICE, || {
            let launched = (0..launches).try_for_each(|_| work.launch());
            // Also after a failure: running work would appear in the records of the next window.
            let synchronized = work.synchronize();
            launched.and(synchronized)
        })?;
        match activities.dropped {
            0 => Ok(activities),
            dropped => Err(format!(
                "CUPTI has no time for {dropped} of the kernels and copies in a window of {launches} launches, so the \
                 window was not timed: the work may not have synchronized all launches, or the device is out of memory"
            )
            .into()),
        }
    }
}

impl Stopwatch for KernelClock {
    fn name(&self) -> &'static str {
        "cupti"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Excluded
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        Ok(Reading::Ready(self.windows(work, &[launches])?[0]))
    }

    /// Splits one recording into windows. If launches run different numbers of kernels, the windows are recorded
    /// separately, with pauses between them.
    fn windows(&mut self, work: &mut dyn Work, launches: &[u32]) -> Result<Vec<u64>, Failure> {
        let all = self.activities(work, launches.iter().sum())?;
        let windows = match launches {
            [_] => vec![all],
            _ => match all.split_windows(launches) {
                Some(windows) => windows,
                None => {
                    self.interrupted_bursts += 1;
                    launches.iter().map(|&launches| self.activities(work, launches)).collect::<Result<_, _>>()?
                }
            },
        };
        self.spans = windows.iter().map(Activities::span_ns).collect();
        Ok(windows.iter().map(Activities::busy_ns).collect())
    }

    /// Runs without records: enabling and disabling them would leave the device partly idle.
    fn load(&mut self, work: &mut dyn Work, launches: u32) -> Result<(), Failure> {
        (0..launches).try_for_each(|_| work.launch())?;
        work.synchronize()
    }

    fn warning(&self) -> Option<Warning> {
        (self.interrupted_bursts > 0).then(|| Warning::interrupted_bursts(self.interrupted_bursts))
    }

    fn kernel_tracing(&mut self) -> Option<&mut dyn KernelTracing> {
        Some(self)
    }

    /// Enabling, disabling and reading records takes about a millisecond.
    fn min_window(&self) -> Duration {
        Duration::from_millis(20)
    }

    fn resolution(&mut self, work: &mut dyn Work) -> Result<ClockResolution, Failure> {
        ClockResolution::from_launches(|launches| Ok(self.activities(work, launches)?.busy_ns()))
    }
}

impl KernelTracing for KernelClock {
    fn kernel_calls(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<(String, u64)>, Failure> {
        let totals = self.kernels(work, launches)?;
        Ok(totals.into_iter().map(|total| (total.name.to_string(), total.calls)).collect())
    }

    fn window_spans(&self) -> &[u64] {
        &self.spans
    }
}
