//! Times of single launches for tables in the formats of other programs, which contain percentiles. Windows with many
//! launches would average slow ones away.

use super::finding::Facet;
use super::inspection::{InspectedCase, Inspection};
use super::single_launches::time_single_launches;
use crate::worker::event::Stage;
use crate::worker::group_context::GroupContext;
use crate::worker::protocol::Assignment;
use calorimeter_case::Case;
use calorimeter_timing::{Failure, Overhead, Stopwatch};

/// Default number of launches, as in accelerator-microbenchmarks; a larger minimum of windows overrides it.
const DEFAULT_LAUNCHES: u32 = 100;

/// Inspection that times single launches.
pub struct LaunchesInspection;

impl Inspection for LaunchesInspection {
    fn applies_to(&self, case: &Case, _: &Assignment) -> bool {
        case.export.as_ref().is_some_and(|export| export.csv_path.is_some() || export.metrics_dir.is_some())
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
        subject.remarks.extend(remark(subject.stopwatch));
        Ok(Some(Facet::Launches(times)))
    }

    fn missing_facet(&self) -> &'static str {
        "no times of single launches, so no row in its table"
    }
}

/// Explains a time that does not belong to a single launch.
fn remark(stopwatch: &dyn Stopwatch) -> Option<String> {
    let (name, unit) = (stopwatch.name(), stopwatch.launch_multiple());
    if unit > 1 {
        return Some(format!("iterations_ns are means of {unit} launches each: {name} cannot time fewer"));
    }
    let waits = stopwatch.overhead() == Overhead::Included;
    waits.then(|| format!("iterations_ns include the fixed overhead of a window, which {name} subtracts from time_ns"))
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
    fn averaged_launch_times_have_a_remark() {
        let waits = remark(scripted(1000.0, 500.0).as_ref()).unwrap();
        assert!(waits.contains("the fixed overhead of a window, which mock subtracts from time_ns"), "{waits}");
        let eights = BatchedClock(MockClock::new(Script { nanos: 1000.0, ..Script::default() }));
        let together = remark(&eights).unwrap();
        assert_eq!(together, "iterations_ns are means of 8 launches each: eights cannot time fewer");
        assert_eq!(remark(scripted(1000.0, 0.0).as_ref()), None);
    }
}
