//! Times of single launches, rotating through the buffer sets.

use super::inspection::Subject;
use crate::worker::event::Listener;
use calorimeter_timing::{Failure, Options, Silence};
use std::time::Duration;

/// Windows before the first that counts.
const WARM_UP: usize = 3;
/// Minimum number of launches for percentiles.
const LEAST: usize = 10;
/// Time limit after which fewer launches suffice, so that slow cases do not time out.
const LONG: Duration = Duration::from_secs(20);
/// Target duration of a row of consecutive windows.
const STRETCH: Duration = Duration::from_millis(100);

/// Times `count` launches, or as many as fit into half of the case's time budget, each in the smallest window of the
/// stopwatch. If opening a window leaves the device idle, many windows are timed in a row, and the first of each row
/// are discarded.
pub fn one_by_one(
    one: &mut Subject<'_>,
    count: u32,
    timing: &Options,
    silence: &Silence,
    listener: &dyn Listener,
) -> Result<Vec<u64>, Failure> {
    let (unit, start) = (one.stopwatch.unit(), one.stopwatch.now());
    let earlier_remark = one.stopwatch.remark();
    let rests = one.stopwatch.least_window() > Duration::ZERO;
    let (mut lead, mut row, mut remaining) = (WARM_UP, 1, count as usize);
    let mut times: Vec<u64> = Vec::new();
    while remaining > 0 {
        let from = one.stopwatch.now();
        let spent = from - start;
        let enough = times.len() >= LEAST && spent >= timing.max_time / 2;
        let too_long = !times.is_empty() && spent >= LONG;
        if enough || too_long || listener.interrupted() {
            break;
        }
        row = remaining.min(row);
        let before = silence.disturbances();
        let nanos = one.stopwatch.windows(one.job, &vec![unit; lead + row])?;
        remaining -= row;
        if silence.disturbances() == before {
            times.extend(nanos.iter().skip(lead).map(|nanos| nanos / u64::from(unit)));
        }
        if !rests {
            lead = 0;
        } else if one.stopwatch.now() - from < STRETCH / 4 {
            row *= 4;
        }
    }
    let remark = one.stopwatch.remark().filter(|remark| earlier_remark.as_ref() != Some(remark));
    one.remarks.extend(remark.map(|remark| format!("single launches included, {remark}")));
    Ok(times)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::mock::{Fault, MockWorkload, Rule};
    use crate::worker::arm::{Arm, Job};
    use crate::worker::event::Event;
    use calorimeter_case::{Case, Record, Status};
    use calorimeter_timing::{MockClock, Overhead, Reading, Script, Stopwatch, Work};

    pub struct Deaf;

    impl Listener for Deaf {
        fn hear(&mut self, _: Event) {}
    }

    /// Clock that times eight launches at a time.
    pub struct Eights(pub MockClock);

    impl Stopwatch for Eights {
        fn name(&self) -> &'static str {
            "eights"
        }
        fn overhead(&self) -> Overhead {
            Overhead::Outside
        }
        fn unit(&self) -> u32 {
            8
        }
        fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
            self.0.window(work, launches)
        }
    }

    /// Clock that leaves the device idle before each row of windows, so that the first of them take longer.
    struct Rests {
        clock: MockClock,
        rows: Vec<usize>,
    }

    impl Stopwatch for Rests {
        fn name(&self) -> &'static str {
            "rests"
        }
        fn overhead(&self) -> Overhead {
            Overhead::Outside
        }
        fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
            Ok(Reading::Now(self.windows(work, &[launches])?[0]))
        }
        fn windows(&mut self, work: &mut dyn Work, launches: &[u32]) -> Result<Vec<u64>, Failure> {
            let mut nanos = Vec::new();
            for (at, &launches) in launches.iter().enumerate() {
                nanos.push(self.clock.window(work, launches)?.resolve()? + if at < WARM_UP { 700 } else { 0 });
            }
            self.rows.push(launches.len());
            // One row per call.
            assert!(self.rows.len() < 20, "a recording for every launch: {:?}", self.rows);
            Ok(nanos)
        }
        fn least_window(&self) -> Duration {
            Duration::from_millis(20)
        }
        fn now(&self) -> Duration {
            self.clock.now()
        }
    }

    pub fn arm(stopwatch: Box<dyn Stopwatch>) -> Arm {
        faulty(stopwatch, Rule::default())
    }

    fn faulty(stopwatch: Box<dyn Stopwatch>, rule: Rule) -> Arm {
        let job = Job(Box::new(MockWorkload::new(rule)));
        let record = Record::new(Case::default(), Status::Ok);
        Arm {
            job,
            stopwatch,
            record,
            assigned: crate::worker::AssignedCase { case: Case::default(), against: None, sets: 1, kernels: None },
            kinds: vec![],
            share: 1.0,
            unjudged: Default::default(),
        }
    }

    pub fn scripted(nanos: f64, fixed: f64) -> Box<dyn Stopwatch> {
        Box::new(MockClock::new(Script { nanos, fixed, ..Script::default() }))
    }

    fn taken(arm: &mut Arm) -> Result<Vec<u64>, Failure> {
        let timing = Options { max_time: Duration::from_secs(5), ..Options::default() };
        one_by_one(&mut arm.into(), 100, &timing, Silence::listen(), &Deaf)
    }

    #[test]
    fn slow_launches_are_not_averaged_away() {
        let clock = MockClock::new(Script { nanos: 1000.0, spikes: 0.1, ..Script::default() });
        let times = taken(&mut arm(Box::new(clock))).unwrap();
        let slow = times.iter().filter(|&&nanos| nanos > 1000).count();
        assert!(times.len() == 100 && slow > 0 && times.iter().all(|&nanos| nanos >= 1000), "{times:?}");
    }

    #[test]
    fn half_of_the_time_is_spent_unless_that_makes_too_few() {
        for (seconds, count) in [(0.001, 100), (0.1, 22), (1.0, 10), (6.0, 1)] {
            let times = taken(&mut arm(scripted(seconds * 1e9, 0.0))).unwrap();
            assert_eq!(times.len(), count, "{seconds} s");
        }
    }

    #[test]
    fn a_clock_that_lets_the_device_rest_times_many_in_a_row_and_leaves_out_the_first() {
        let clock = MockClock::new(Script { nanos: 1000.0, ..Script::default() });
        let times = taken(&mut arm(Box::new(Rests { clock, rows: vec![] }))).unwrap();
        assert_eq!(times, [1000; 100]);
    }

    #[test]
    fn several_launches_that_are_timed_as_one_have_their_mean_and_broken_ones_none() {
        let eights = Eights(MockClock::new(Script { nanos: 1000.0, ..Script::default() }));
        assert_eq!(taken(&mut arm(Box::new(eights))).unwrap(), [1000; 100]);
        let broken = Rule { fault: Some(Fault::Error), ..Rule::default() };
        assert!(taken(&mut faulty(scripted(1000.0, 0.0), broken)).is_err());
    }
}
