//! Percentiles of single launches, on request: windows with many launches would average slow ones away.

use super::finding::Facet;
use super::inspection::{InspectedCase, Inspection};
use super::single_launches::time_single_launches;
use crate::worker::event::Stage;
use crate::worker::group_context::GroupContext;
use crate::worker::protocol::Assignment;
use calorimeter_case::record::LaunchTimes;
use calorimeter_case::{Case, Warning};
use calorimeter_timing::{Failure, Overhead, Stopwatch, quantile};

/// Number of launches; ten of them are above the 99th percentile.
const LAUNCHES: u32 = 1000;

/// Inspection that computes the percentiles of single launches.
pub(super) struct PercentilesInspection;

impl Inspection for PercentilesInspection {
    fn applies_to(&self, case: &Case, _: &Assignment) -> bool {
        case.percentiles
    }

    fn stage(&self) -> Stage {
        Stage::Measure
    }

    fn inspect(
        &mut self,
        subject: &mut InspectedCase<'_>,
        group: &mut GroupContext<'_>,
    ) -> Result<Option<Facet>, Failure> {
        let Some(timing) = group.assignment.purpose.timing() else { return Ok(None) };
        if let Some(why) = unsupported_reason(subject.stopwatch) {
            return Err(why.into());
        }
        let times = time_single_launches(subject, LAUNCHES, timing, group.context.silence, group.listener)?;
        Ok(percentiles(times).map(Facet::Percentiles))
    }

    fn failure_warning(&self, error: &Failure) -> Warning {
        Warning::missing_percentiles(error)
    }
}

/// Reason why a stopwatch cannot time a single launch.
fn unsupported_reason(stopwatch: &dyn Stopwatch) -> Option<String> {
    let (name, unit) = (stopwatch.name(), stopwatch.launch_multiple());
    if unit > 1 {
        return Some(format!("{name} times {unit} launches per window"));
    }
    let waits = stopwatch.overhead() == Overhead::Included;
    waits.then(|| {
        format!(
            "a window of one launch includes the fixed overhead, which {name} subtracts from time_ns by comparing \
             window lengths; regime host-e2e times a launch including its synchronization"
        )
    })
}

/// Percentiles that the number of launches supports.
fn percentiles(times: Vec<u64>) -> Option<LaunchTimes> {
    let mut sorted: Vec<f64> = times.into_iter().map(|nanos| nanos as f64).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    let of = |least: usize, share: f64| (count >= least).then(|| quantile(&sorted, share));
    let (p50, p95, p99) = (of(1, 0.5), of(20, 0.95), of(100, 0.99));
    (count > 0).then_some(LaunchTimes { count: count as u32, p50, p95, p99 })
}

#[cfg(test)]
mod tests {
    use super::super::single_launches::tests::{BatchedClock, scripted};
    use super::*;
    use calorimeter_timing::{MockClock, Script};

    #[test]
    fn percentiles_need_enough_launches() {
        let times = percentiles((1..=1000).rev().collect()).unwrap();
        assert_eq!((times.count, times.p50, times.p95), (1000, Some(500.5), Some(950.05)));
        assert!(times.p99.is_some_and(|p99| (990.0..=991.0).contains(&p99)), "{times:?}");
        let few = percentiles(vec![7; 99]).unwrap();
        assert_eq!((few.p95, few.p99), (Some(7.0), None));
        assert_eq!((percentiles(vec![7; 19]).unwrap().p95, percentiles(vec![])), (None, None));
    }

    #[test]
    fn batching_clock_is_refused() {
        assert_eq!(unsupported_reason(scripted(1000.0, 0.0).as_ref()), None);
        assert!(unsupported_reason(scripted(1000.0, 500.0).as_ref()).unwrap().contains("host-e2e"));
        let eights = BatchedClock(MockClock::new(Script::default()));
        assert_eq!(unsupported_reason(&eights).unwrap(), "eights times 8 launches per window");
    }
}
