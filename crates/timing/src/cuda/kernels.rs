//! The clock that reads CUPTI's records: device time of whatever the work launches, on any stream.

use super::{Activities, Cupti, KernelTotal, Kinds};
use crate::{Failure, Granularity, Overhead, Reading, Stopwatch, Work};
use std::time::Duration;

/// The time in which at least one kernel, copy or fill of a window was running on the device. Kernels that overlap are
/// not counted twice, and gaps between kernels are not counted.
///
/// Records are switched on when a window opens and off when it closes. Left on they would spare this clock a few calls
/// per window, at a moment when nothing is timed; but every launch of a process pays for records that are on, with host
/// time and with a timestamp written before and after each kernel, and so would the arms measured in alternation with
/// this one by events, graphs or the wall clock: they would seem slower than they are.
pub struct KernelClock {
    cupti: &'static Cupti,
    spans: Vec<u64>,
    /// Stretches of windows that could not be recorded in one.
    rested: u32,
}

impl KernelClock {
    /// A clock that reads these records.
    pub fn new(cupti: &'static Cupti) -> Self {
        Self { cupti, spans: Vec::new(), rested: 0 }
    }

    /// What runs on the device in that many launches, the longest total first.
    pub fn kernels(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<KernelTotal>, Failure> {
        Ok(self.activities(work, launches)?.totals())
    }

    fn activities(&self, work: &mut dyn Work, launches: u32) -> Result<Activities, Failure> {
        // What was launched before must not run into the window.
        work.settle()?;
        let ((), activities) = self.cupti.record(Kinds::DEVICE, || {
            let launched = (0..launches).try_for_each(|_| work.launch());
            // Also after a failure: what is still running would turn up in the next window's records.
            let settled = work.settle();
            launched.and(settled)
        })?;
        match activities.dropped {
            0 => Ok(activities),
            dropped => Err(format!(
                "CUPTI has no time for {dropped} of the kernels and copies in a window of {launches} launches, so the \
                 window has none: the work may not have waited for all it launched, or the device is out of memory"
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
        Overhead::Outside
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        Ok(Reading::Now(self.windows(work, &[launches])?[0]))
    }

    /// One recording, cut into windows. Where launches do not all run as many kernels, nobody can say where to cut, and
    /// there are rests between the windows.
    fn windows(&mut self, work: &mut dyn Work, launches: &[u32]) -> Result<Vec<u64>, Failure> {
        let all = self.activities(work, launches.iter().sum())?;
        let windows = match launches {
            [_] => vec![all],
            _ => match all.cut(launches) {
                Some(windows) => windows,
                None => {
                    self.rested += 1;
                    launches.iter().map(|&launches| self.activities(work, launches)).collect::<Result<_, _>>()?
                }
            },
        };
        self.spans = windows.iter().map(Activities::span_ns).collect();
        Ok(windows.iter().map(Activities::busy_ns).collect())
    }

    /// Without records: switching them on and off would leave the device idle for a part of the time.
    fn load(&mut self, work: &mut dyn Work, launches: u32) -> Result<(), Failure> {
        (0..launches).try_for_each(|_| work.launch())?;
        work.settle()
    }

    fn remark(&self) -> Option<String> {
        let rests =
            "stretches of windows had rests in them, in which clocks rise: not every launch ran as many kernels";
        (self.rested > 0).then(|| format!("{} {rests}", self.rested))
    }

    fn spans_of_windows(&self) -> &[u64] {
        &self.spans
    }

    /// Switching records on and off and reading them takes about a millisecond.
    fn least_window(&self) -> Duration {
        Duration::from_millis(20)
    }

    fn ran(&mut self, work: &mut dyn Work, launches: u32) -> Result<Option<Vec<(String, u64)>>, Failure> {
        let totals = self.kernels(work, launches)?;
        Ok(Some(totals.into_iter().map(|total| (total.name.to_string(), total.calls)).collect()))
    }

    fn granularity(&mut self, work: &mut dyn Work) -> Result<Granularity, Failure> {
        Granularity::by_launches(|launches| Ok(self.activities(work, launches)?.busy_ns()))
    }
}
