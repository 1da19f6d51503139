//! Single launches of the cases that another program's table is written for: in a window of many the slow ones are averaged
//! away, and that table has their percentiles.

use super::inspection::Inspection;
use crate::worker::arm::Arm;
use crate::worker::event::{Listener, Stage};
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::Case;
use calorimeter_timing::{Failure, Options, Overhead, Silence};
use std::time::Duration;

/// Windows before those that count.
const WARM_UP: u32 = 3;
/// Fewer make no percentiles.
const LEAST: usize = 10;
/// After this long fewer will do: slow work is not to run into its timeout here.
const LONG: Duration = Duration::from_secs(20);
/// What files of accelerator-microbenchmarks usually ask for; where they ask for more, it is the least number of windows.
const USUAL: u32 = 100;

/// Times launches one by one.
pub struct SingleLaunches;

impl Inspection for SingleLaunches {
    fn wanted(&self, case: &Case, _: &Assignment) -> bool {
        case.export.as_ref().is_some_and(|export| export.csv_path.is_some() || export.metrics_dir.is_some())
    }

    fn stage(&self) -> Stage {
        Stage::Measure
    }

    fn look(&mut self, arm: &mut Arm, scene: &mut Scene<'_>) -> Result<(), Failure> {
        let Some(timing) = &scene.assignment.timing else { return Ok(()) };
        arm.record.time.iterations_ns = one_by_one(arm, timing, scene.context.silence, scene.listener)?;
        let remark = remark(arm);
        arm.record.outcome.warnings.extend(remark);
        Ok(())
    }

    fn lacking(&self) -> &'static str {
        "no times of single launches, so no row in its table"
    }
}

/// As many as were asked for, or as fit into half of the case's time.
fn one_by_one(
    one: &mut Arm,
    timing: &Options,
    silence: &Silence,
    listener: &dyn Listener,
) -> Result<Vec<u64>, Failure> {
    let (unit, begun) = (one.stopwatch.unit(), one.stopwatch.now());
    let mut times = Vec::new();
    for window in 0..WARM_UP + timing.min_windows.max(USUAL) {
        let spent = one.stopwatch.now() - begun;
        let enough = times.len() >= LEAST && spent >= timing.max_time / 2;
        let too_long = !times.is_empty() && spent >= LONG;
        if enough || too_long || listener.interrupted() {
            break;
        }
        let before = silence.disturbances();
        let nanos = one.stopwatch.window(&mut one.job, unit)?.resolve()?;
        if window >= WARM_UP && silence.disturbances() == before {
            times.push(nanos / u64::from(unit));
        }
    }
    Ok(times)
}

/// What such a time means where it is not that of one launch alone.
fn remark(one: &Arm) -> Option<String> {
    let (name, unit) = (one.stopwatch.name(), one.stopwatch.unit());
    if unit > 1 {
        return Some(format!("iterations_ns are means of {unit} launches each: {name} times no fewer"));
    }
    let waits = one.stopwatch.overhead() == Overhead::Inside;
    waits.then(|| format!("iterations_ns hold the fixed cost of a window, which {name} takes off time_ns"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::{MockWorkload, Rule};
    use crate::worker::arm::Job;
    use crate::worker::event::Event;
    use calorimeter_case::{Export, Record, Status};
    use calorimeter_timing::{MockClock, Reading, Script, Stopwatch, Work};

    struct Deaf;

    impl Listener for Deaf {
        fn hear(&mut self, _: Event) {}
    }

    /// A clock that takes eight launches at once.
    struct Eights(MockClock);

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

    fn taken(stopwatch: Box<dyn Stopwatch>, rule: Rule) -> Result<(Vec<u64>, Option<String>), Failure> {
        let job = Job(Box::new(MockWorkload::new(rule)));
        let record = Record::new(Case::default(), Status::Ok);
        let mut arm = Arm { job, stopwatch, record, against: None, kinds: vec![], share: 1.0, kernels: None };
        let timing = Options { max_time: Duration::from_secs(5), ..Options::default() };
        let times = one_by_one(&mut arm, &timing, Silence::listen(), &Deaf)?;
        Ok((times, remark(&arm)))
    }

    fn scripted(nanos: f64, fixed: f64) -> Box<dyn Stopwatch> {
        Box::new(MockClock::new(Script { nanos, fixed, ..Script::default() }))
    }

    #[test]
    fn slow_launches_are_not_averaged_away() {
        let clock = MockClock::new(Script { nanos: 1000.0, spikes: 0.1, ..Script::default() });
        let (times, _) = taken(Box::new(clock), Rule::default()).unwrap();
        let slow = times.iter().filter(|&&nanos| nanos > 1000).count();
        assert!(times.len() == 100 && slow > 0 && times.iter().all(|&nanos| nanos >= 1000), "{times:?}");
    }

    #[test]
    fn half_of_the_time_is_spent_unless_that_makes_too_few() {
        for (seconds, count) in [(0.001, 100), (0.1, 22), (1.0, 10), (6.0, 1)] {
            let (times, remark) = taken(scripted(seconds * 1e9, 0.0), Rule::default()).unwrap();
            assert_eq!((times.len(), remark), (count, None), "{seconds} s");
        }
    }

    #[test]
    fn they_are_taken_where_a_table_wants_them() {
        let assignment = crate::worker::remaining::tests::assignment(0);
        let case = |csv_path: Option<&str>| {
            let export = Export { csv_path: csv_path.map(str::to_owned), ..Export::default() };
            Case { export: Some(export), ..Case::default() }
        };
        assert!(SingleLaunches.wanted(&case(Some("t")), &assignment));
        assert!(!SingleLaunches.wanted(&case(None), &assignment));
        assert!(!SingleLaunches.wanted(&Case::default(), &assignment));
    }

    #[test]
    fn what_is_not_the_time_of_one_launch_alone_is_said() {
        let (times, remark) = taken(scripted(1000.0, 500.0), Rule::default()).unwrap();
        assert_eq!(times[0], 1500);
        assert!(remark.unwrap().contains("the fixed cost of a window, which mock takes off time_ns"));
        let clock = MockClock::new(Script { nanos: 1000.0, ..Script::default() });
        let (times, remark) = taken(Box::new(Eights(clock)), Rule::default()).unwrap();
        assert_eq!(times, [1000; 100]);
        assert_eq!(remark.unwrap(), "iterations_ns are means of 8 launches each: eights times no fewer");
        let broken = Rule { fault: Some(crate::mock::Fault::Error), ..Rule::default() };
        assert!(taken(scripted(1000.0, 0.0), broken).is_err());
    }
}
