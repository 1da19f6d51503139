//! Times of single launches, rotating through the buffer sets.

use super::inspection::InspectedCase;
use crate::worker::event::WorkerListener;
use calorimeter_case::Warning;
use calorimeter_timing::{Failure, JitMonitor, Options};
use std::time::Duration;

/// Windows before the first that counts.
const WARM_UP_WINDOWS: usize = 3;
/// Minimum number of launches for percentiles.
const MIN_LAUNCHES: usize = 10;
/// Time limit after which fewer launches suffice, so that slow cases do not time out.
const SLOW_LIMIT: Duration = Duration::from_secs(20);
/// Target duration of a row of consecutive windows.
const ROW_DURATION: Duration = Duration::from_millis(100);

/// Times `count` launches, or as many as fit into half of the case's time budget, each in the smallest window of the
/// stopwatch. If opening a window leaves the device idle, many windows are timed in a row, and the first of each row
/// are discarded.
pub(super) fn time_single_launches(
    one: &mut InspectedCase<'_>,
    count: u32,
    timing: &Options,
    silence: &JitMonitor,
    listener: &dyn WorkerListener,
) -> Result<Vec<u64>, Failure> {
    let (unit, start) = (one.stopwatch.launch_multiple(), one.stopwatch.now());
    let earlier_warning = one.stopwatch.warning();
    let rests = one.stopwatch.min_window() > Duration::ZERO;
    let (mut lead, mut row, mut remaining) = (WARM_UP_WINDOWS, 1, count as usize);
    let mut times: Vec<u64> = Vec::new();
    while remaining > 0 {
        let from = one.stopwatch.now();
        let spent = from - start;
        let enough = times.len() >= MIN_LAUNCHES && spent >= timing.max_time / 2;
        let too_long = !times.is_empty() && spent >= SLOW_LIMIT;
        if enough || too_long || listener.interrupted() {
            break;
        }
        row = remaining.min(row);
        let before = silence.jit_events();
        let nanos = one.stopwatch.windows(one.job, &vec![unit; lead + row])?;
        remaining -= row;
        if silence.jit_events() == before {
            times.extend(nanos.iter().skip(lead).map(|nanos| nanos / u64::from(unit)));
        }
        if !rests {
            lead = 0;
        } else if one.stopwatch.now() - from < ROW_DURATION / 4 {
            row *= 4;
        }
    }
    let warning = one.stopwatch.warning().filter(|warning| earlier_warning.as_ref() != Some(warning));
    one.warnings.extend(warning.map(Warning::single_launches));
    Ok(times)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::mock::{Fault, MockRule, MockWorkload};
    use crate::worker::arm::CaseArm;
    use crate::worker::event::WorkerEvent;
    use calorimeter_case::{Case, Record, Status};
    use calorimeter_probe::TimedWorkload;
    use calorimeter_timing::{MockClock, Overhead, Reading, Script, Stopwatch, Work};

    pub(crate) struct SilentListener;

    impl WorkerListener for SilentListener {
        fn on_event(&mut self, _: WorkerEvent) {}
    }

    /// Clock that times eight launches at a time.
    pub(crate) struct BatchedClock(pub MockClock);

    impl Stopwatch for BatchedClock {
        fn name(&self) -> &'static str {
            "eights"
        }
        fn overhead(&self) -> Overhead {
            Overhead::Excluded
        }
        fn launch_multiple(&self) -> u32 {
            8
        }
        fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
            self.0.window(work, launches)
        }
    }

    /// Clock that leaves the device idle before each row of windows, so that the first of them take longer.
    struct IdlingClock {
        clock: MockClock,
        rows: Vec<usize>,
    }

    impl Stopwatch for IdlingClock {
        fn name(&self) -> &'static str {
            "rests"
        }
        fn overhead(&self) -> Overhead {
            Overhead::Excluded
        }
        fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
            Ok(Reading::Ready(self.windows(work, &[launches])?[0]))
        }
        fn windows(&mut self, work: &mut dyn Work, launches: &[u32]) -> Result<Vec<u64>, Failure> {
            let mut nanos = Vec::new();
            for (at, &launches) in launches.iter().enumerate() {
                nanos.push(self.clock.window(work, launches)?.resolve()? + if at < WARM_UP_WINDOWS { 700 } else { 0 });
            }
            self.rows.push(launches.len());
            // One row per call.
            assert!(self.rows.len() < 20, "a recording for every launch: {:?}", self.rows);
            Ok(nanos)
        }
        fn min_window(&self) -> Duration {
            Duration::from_millis(20)
        }
        fn now(&self) -> Duration {
            self.clock.now()
        }
    }

    pub(crate) fn arm(stopwatch: Box<dyn Stopwatch>) -> CaseArm {
        faulty(stopwatch, MockRule::default())
    }

    fn faulty(stopwatch: Box<dyn Stopwatch>, rule: MockRule) -> CaseArm {
        let job = TimedWorkload(Box::new(MockWorkload::new(rule)));
        let record = Record::new(Case::default(), Status::Ok);
        CaseArm {
            job,
            stopwatch,
            record,
            assigned: crate::worker::remaining::tests::assignment(1).cases.remove(0),
            matmul_kinds: vec![],
            computed_share: 1.0,
            pending_checks: Default::default(),
        }
    }

    pub(crate) fn scripted(nanos: f64, fixed: f64) -> Box<dyn Stopwatch> {
        Box::new(MockClock::new(Script { nanos, fixed, ..Script::default() }))
    }

    fn launch_times(arm: &mut CaseArm) -> Result<Vec<u64>, Failure> {
        let timing = Options { max_time: Duration::from_secs(5), ..Options::default() };
        time_single_launches(&mut arm.into(), 100, &timing, JitMonitor::install(), &SilentListener)
    }

    #[test]
    fn slow_launches_are_not_averaged_away() {
        let clock = MockClock::new(Script { nanos: 1000.0, spikes: 0.1, ..Script::default() });
        let times = launch_times(&mut arm(Box::new(clock))).unwrap();
        let slow = times.iter().filter(|&&nanos| nanos > 1000).count();
        assert!(times.len() == 100 && slow > 0 && times.iter().all(|&nanos| nanos >= 1000), "{times:?}");
    }

    #[test]
    fn half_of_the_time_budget_is_used() {
        for (seconds, count) in [(0.001, 100), (0.1, 22), (1.0, 10), (6.0, 1)] {
            let times = launch_times(&mut arm(scripted(seconds * 1e9, 0.0))).unwrap();
            assert_eq!(times.len(), count, "{seconds} s");
        }
    }

    #[test]
    fn idling_clock_skips_the_first_launches() {
        let clock = MockClock::new(Script { nanos: 1000.0, ..Script::default() });
        let times = launch_times(&mut arm(Box::new(IdlingClock { clock, rows: vec![] }))).unwrap();
        assert_eq!(times, [1000; 100]);
    }

    #[test]
    fn batched_launches_report_their_mean() {
        let eights = BatchedClock(MockClock::new(Script { nanos: 1000.0, ..Script::default() }));
        assert_eq!(launch_times(&mut arm(Box::new(eights))).unwrap(), [1000; 100]);
        let broken = MockRule { fault: Some(Fault::Error), ..MockRule::default() };
        assert!(launch_times(&mut faulty(scripted(1000.0, 0.0), broken)).is_err());
    }
}
