//! Times of single launches for tables in the formats of other programs, which contain percentiles. Windows with many
//! launches would average slow ones away.

use super::finding::Facet;
use super::inspection::{InspectedCase, Inspection};
use super::single_launches::time_single_launches;
use crate::worker::event::Stage;
use crate::worker::group_context::GroupContext;
use crate::worker::protocol::Assignment;
use calorimeter_case::{Case, Warning};
use calorimeter_timing::{Failure, Overhead, Stopwatch};

/// Default number of launches, as in accelerator-microbenchmarks; a larger minimum of windows overrides it.
const DEFAULT_LAUNCHES: u32 = 100;

/// Inspection that times single launches.
pub(super) struct LaunchesInspection;

impl Inspection for LaunchesInspection {
    fn applies_to(&self, case: &Case, _: &Assignment) -> bool {
        case.export.as_ref().is_some_and(|export| {
            export.csv_path.is_some() || export.metrics_dir.is_some() || export.benchmark.is_some()
        })
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
        let count = timing.min_windows.max(DEFAULT_LAUNCHES);
        let times = time_single_launches(subject, count, timing, group.context.silence, group.listener)?;
        subject.warnings.extend(warning(subject.stopwatch));
        Ok(Some(Facet::Launches(times)))
    }

    fn failure_warning(&self, error: &Failure) -> Warning {
        Warning::missing_launches(error)
    }
}

/// Explains a time that does not belong to a single launch.
fn warning(stopwatch: &dyn Stopwatch) -> Option<Warning> {
    let (name, unit) = (stopwatch.name(), stopwatch.launch_multiple());
    if unit > 1 {
        return Some(Warning::averaged_launches(unit, name));
    }
    let waits = stopwatch.overhead() == Overhead::Included;
    waits.then(|| Warning::launch_overhead(name))
}

#[cfg(test)]
mod tests {
    use super::super::single_launches::tests::{BatchedClock, scripted};
    use super::*;
    use calorimeter_case::Export;
    use calorimeter_timing::{MockClock, Script};

    #[test]
    fn launches_are_timed_for_exported_tables() {
        let assignment = crate::worker::remaining::tests::assignment(0);
        let case = |csv_path: Option<&str>| {
            let export = Export { csv_path: csv_path.map(str::to_owned), ..Export::default() };
            Case { export: Some(Box::new(export)), ..Case::default() }
        };
        assert!(LaunchesInspection.applies_to(&case(Some("t")), &assignment));
        assert!(!LaunchesInspection.applies_to(&case(None), &assignment));
        assert!(!LaunchesInspection.applies_to(&Case::default(), &assignment));
    }

    #[test]
    fn averaged_launch_times_have_a_warning() {
        assert_eq!(warning(scripted(1000.0, 500.0).as_ref()), Some(Warning::launch_overhead("mock")));
        let eights = BatchedClock(MockClock::new(Script { nanos: 1000.0, ..Script::default() }));
        assert_eq!(warning(&eights), Some(Warning::averaged_launches(8, "eights")));
        assert_eq!(warning(scripted(1000.0, 0.0).as_ref()), None);
    }
}
