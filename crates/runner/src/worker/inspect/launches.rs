//! Times of single launches for tables in the formats of other programs, which contain percentiles. Windows with many
//! launches would average slow ones away.

use super::finding::Facet;
use super::inspection::{Inspection, Subject};
use super::one_by_one::one_by_one;
use crate::worker::event::Stage;
use crate::worker::protocol::Assignment;
use crate::worker::scene::Scene;
use calorimeter_case::Case;
use calorimeter_timing::{Failure, Overhead, Stopwatch};

/// Default number of launches, as in accelerator-microbenchmarks; a larger minimum of windows overrides it.
const USUAL: u32 = 100;

/// Inspection that times single launches.
pub struct SingleLaunches;

impl Inspection for SingleLaunches {
    fn wanted(&self, case: &Case, _: &Assignment) -> bool {
        case.export.as_ref().is_some_and(|export| export.csv_path.is_some() || export.metrics_dir.is_some())
    }

    fn stage(&self) -> Stage {
        Stage::Measure
    }

    fn look(&mut self, subject: &mut Subject<'_>, group: &mut Scene<'_>) -> Result<Option<Facet>, Failure> {
        let Some(timing) = &group.assignment.timing else { return Ok(None) };
        let count = timing.min_windows.max(USUAL);
        let times = one_by_one(subject, count, timing, group.context.silence, group.listener)?;
        subject.remarks.extend(remark(subject.stopwatch));
        Ok(Some(Facet::Launches(times)))
    }

    fn lacking(&self) -> &'static str {
        "no times of single launches, so no row in its table"
    }
}

/// Explains a time that does not belong to a single launch.
fn remark(stopwatch: &dyn Stopwatch) -> Option<String> {
    let (name, unit) = (stopwatch.name(), stopwatch.unit());
    if unit > 1 {
        return Some(format!("iterations_ns are means of {unit} launches each: {name} cannot time fewer"));
    }
    let waits = stopwatch.overhead() == Overhead::Inside;
    waits.then(|| format!("iterations_ns include the fixed overhead of a window, which {name} subtracts from time_ns"))
}

#[cfg(test)]
mod tests {
    use super::super::one_by_one::tests::{Eights, scripted};
    use super::*;
    use calorimeter_case::Export;
    use calorimeter_timing::{MockClock, Script};

    #[test]
    fn they_are_taken_where_a_table_wants_them() {
        let assignment = crate::worker::remaining::tests::assignment(0);
        let case = |csv_path: Option<&str>| {
            let export = Export { csv_path: csv_path.map(str::to_owned), ..Export::default() };
            Case { export: Some(Box::new(export)), ..Case::default() }
        };
        assert!(SingleLaunches.wanted(&case(Some("t")), &assignment));
        assert!(!SingleLaunches.wanted(&case(None), &assignment));
        assert!(!SingleLaunches.wanted(&Case::default(), &assignment));
    }

    #[test]
    fn what_is_not_the_time_of_one_launch_alone_is_said() {
        let waits = remark(scripted(1000.0, 500.0).as_ref()).unwrap();
        assert!(waits.contains("the fixed overhead of a window, which mock subtracts from time_ns"), "{waits}");
        let eights = Eights(MockClock::new(Script { nanos: 1000.0, ..Script::default() }));
        let together = remark(&eights).unwrap();
        assert_eq!(together, "iterations_ns are means of 8 launches each: eights cannot time fewer");
        assert_eq!(remark(scripted(1000.0, 0.0).as_ref()), None);
    }
}
