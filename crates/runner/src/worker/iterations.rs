//! Single launches of the cases that another program's table is written for: in a window of many the slow ones are averaged
//! away, and that table has their percentiles.

use super::bench::{Hear, Poisoned, guarded};
use super::protocol::Stage;
use super::ready::Ready;
use calorimeter_sinks::Status;
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

/// Times launches one by one; a case whose clock cannot says so in its warnings.
pub fn take(ready: &mut [Ready], timing: &Options, silence: &Silence, hear: &mut dyn Hear) -> Result<(), Poisoned> {
    for one in ready.iter_mut() {
        let export = one.record.case.export.as_ref();
        let wanted = export.is_some_and(|export| export.csv_path.is_some() || export.metrics_dir.is_some());
        if !wanted || one.record.outcome.status != Status::Ok {
            continue;
        }
        hear.touch(one.case, Stage::Measure);
        match guarded(one.case, || one_by_one(one, timing, silence, hear))? {
            Ok(times) => {
                one.record.time.iterations_ns = times;
                one.record.outcome.warnings.extend(remark(one));
            }
            Err(error) => one
                .record
                .outcome
                .warnings
                .push(format!("no times of single launches, so no row in its table: {error}")),
        }
    }
    Ok(())
}

/// As many as were asked for, or as fit into half of the case's time.
fn one_by_one(one: &mut Ready, timing: &Options, silence: &Silence, hear: &dyn Hear) -> Result<Vec<u64>, Failure> {
    let (unit, begun) = (one.stopwatch.unit(), one.stopwatch.now());
    let mut times = Vec::new();
    for window in 0..WARM_UP + timing.min_windows.max(USUAL) {
        let spent = one.stopwatch.now() - begun;
        let enough = times.len() >= LEAST && spent >= timing.max_time / 2;
        let too_long = !times.is_empty() && spent >= LONG;
        if enough || too_long || hear.interrupted() {
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
fn remark(one: &Ready) -> Option<String> {
    let (name, unit) = (one.stopwatch.name(), one.stopwatch.unit());
    if unit > 1 {
        return Some(format!("iterations_ns are means of {unit} launches each: {name} times no fewer"));
    }
    let waits = one.stopwatch.overhead() == Overhead::Inside;
    waits.then(|| format!("iterations_ns hold the fixed cost of a window, which {name} takes off time_ns"))
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Seen;
    use super::super::ready::Job;
    use super::*;
    use crate::mock::{MockWorkload, Rule};
    use calorimeter_case::Export;
    use calorimeter_sinks::{Case, Record};
    use calorimeter_timing::{MockClock, Reading, Script, Stopwatch, Work};

    struct Deaf;

    impl Hear for Deaf {
        fn touch(&mut self, _: usize, _: Stage) {}
        fn record(&mut self, _: usize, _: Record) {}
        fn seen(&mut self, _: usize, _: Seen) {}
        fn interrupted(&self) -> bool {
            false
        }
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

    fn taken(stopwatch: Box<dyn Stopwatch>, rule: Rule, csv_path: Option<&str>) -> Record {
        let export = Export { csv_path: csv_path.map(str::to_owned), ..Export::default() };
        let record = Record::new(Case { export: Some(export), ..Case::default() }, Status::Ok);
        let job = Job(Box::new(MockWorkload::new(rule)));
        let mut ready = [Ready { case: 0, job, stopwatch, record, kinds: vec![], share: 1.0 }];
        let timing = Options { max_time: Duration::from_secs(5), ..Options::default() };
        take(&mut ready, &timing, Silence::listen(), &mut Deaf).unwrap();
        ready.map(|one| one.record)[0].clone()
    }

    fn scripted(nanos: f64, fixed: f64) -> Box<dyn Stopwatch> {
        Box::new(MockClock::new(Script { nanos, fixed, ..Script::default() }))
    }

    #[test]
    fn slow_launches_are_not_averaged_away() {
        let clock = MockClock::new(Script { nanos: 1000.0, spikes: 0.1, ..Script::default() });
        let times = taken(Box::new(clock), Rule::default(), Some("t")).time.iterations_ns;
        let slow = times.iter().filter(|&&nanos| nanos > 1000).count();
        assert!(times.len() == 100 && slow > 0 && times.iter().all(|&nanos| nanos >= 1000), "{times:?}");
    }

    #[test]
    fn half_of_the_time_is_spent_unless_that_makes_too_few() {
        for (seconds, count) in [(0.001, 100), (0.1, 22), (1.0, 10), (6.0, 1)] {
            let record = taken(scripted(seconds * 1e9, 0.0), Rule::default(), Some("t"));
            assert_eq!((record.time.iterations_ns.len(), record.outcome.warnings.len()), (count, 0), "{seconds} s");
        }
        assert!(taken(scripted(1000.0, 0.0), Rule::default(), None).time.iterations_ns.is_empty(), "nobody wants them");
    }

    #[test]
    fn what_is_not_the_time_of_one_launch_alone_is_said() {
        let waits = taken(scripted(1000.0, 500.0), Rule::default(), Some("t"));
        assert_eq!((waits.time.iterations_ns[0], waits.outcome.warnings.len()), (1500, 1));
        assert!(waits.outcome.warnings[0].contains("the fixed cost of a window, which mock takes off time_ns"));
        let clock = MockClock::new(Script { nanos: 1000.0, ..Script::default() });
        let means = taken(Box::new(Eights(clock)), Rule::default(), Some("t"));
        assert_eq!(means.time.iterations_ns, [1000; 100]);
        assert_eq!(means.outcome.warnings, ["iterations_ns are means of 8 launches each: eights times no fewer"]);
        let broken = Rule { fault: Some(crate::mock::Fault::Error), ..Rule::default() };
        let none = taken(scripted(1000.0, 0.0), broken, Some("t"));
        assert!(
            none.time.iterations_ns.is_empty() && none.outcome.warnings[0].starts_with("no times of single launches")
        );
    }
}
