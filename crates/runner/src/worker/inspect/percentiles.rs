//! Percentiles of single launches, on request: windows with many launches would average slow ones away.

use super::finding::Facet;
use super::inspection::{Inspection, Subject};
use super::one_by_one::one_by_one;
use crate::worker::event::Stage;
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::Case;
use calorimeter_case::record::LaunchTimes;
use calorimeter_timing::{Failure, Overhead, Stopwatch, quantile};

/// Number of launches; ten of them are above the 99th percentile.
const LAUNCHES: u32 = 1000;

/// Inspection that computes the percentiles of single launches.
pub struct Percentiles;

impl Inspection for Percentiles {
    fn wanted(&self, case: &Case, _: &Assignment) -> bool {
        case.percentiles
    }

    fn stage(&self) -> Stage {
        Stage::Measure
    }

    fn look(&mut self, subject: &mut Subject<'_>, group: &mut Scene<'_>) -> Result<Option<Facet>, Failure> {
        let Some(timing) = &group.assignment.timing else { return Ok(None) };
        if let Some(why) = never_singly(subject.stopwatch) {
            return Err(why.into());
        }
        let times = one_by_one(subject, LAUNCHES, timing, group.context.silence, group.listener)?;
        Ok(of(times).map(Facet::Percentiles))
    }

    fn lacking(&self) -> &'static str {
        "no percentiles of single launches"
    }
}

/// Reason why a stopwatch cannot time a single launch.
fn never_singly(stopwatch: &dyn Stopwatch) -> Option<String> {
    let (name, unit) = (stopwatch.name(), stopwatch.unit());
    if unit > 1 {
        return Some(format!("{name} times {unit} launches per window"));
    }
    let waits = stopwatch.overhead() == Overhead::Inside;
    waits.then(|| {
        format!(
            "a window of one launch includes the fixed overhead, which {name} subtracts from time_ns by comparing \
             window lengths; regime host-e2e times a launch including its synchronization"
        )
    })
}

/// Percentiles that the number of launches supports.
fn of(times: Vec<u64>) -> Option<LaunchTimes> {
    let mut sorted: Vec<f64> = times.into_iter().map(|nanos| nanos as f64).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    let of = |least: usize, share: f64| (count >= least).then(|| quantile(&sorted, share));
    let (p50, p95, p99) = (of(1, 0.5), of(20, 0.95), of(100, 0.99));
    (count > 0).then_some(LaunchTimes { count: count as u32, p50, p95, p99 })
}

#[cfg(test)]
mod tests {
    use super::super::one_by_one::tests::{Eights, scripted};
    use super::*;
    use calorimeter_timing::{MockClock, Script};

    #[test]
    fn a_percentile_is_told_from_as_many_launches_as_it_takes() {
        let times = of((1..=1000).rev().collect()).unwrap();
        assert_eq!((times.count, times.p50, times.p95), (1000, Some(500.5), Some(950.05)));
        assert!(times.p99.is_some_and(|p99| (990.0..=991.0).contains(&p99)), "{times:?}");
        let few = of(vec![7; 99]).unwrap();
        assert_eq!((few.p95, few.p99), (Some(7.0), None));
        assert_eq!((of(vec![7; 19]).unwrap().p95, of(vec![])), (None, None));
    }

    #[test]
    fn a_clock_that_times_no_launch_alone_is_refused_with_a_reason() {
        assert_eq!(never_singly(scripted(1000.0, 0.0).as_ref()), None);
        assert!(never_singly(scripted(1000.0, 500.0).as_ref()).unwrap().contains("host-e2e"));
        let eights = Eights(MockClock::new(Script::default()));
        assert_eq!(never_singly(&eights).unwrap(), "eights times 8 launches per window");
    }
}
