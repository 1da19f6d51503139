//! Wall time of a run by stage, for `--timings`.

use crate::run::RunEvent;
use crate::worker::Stage;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

/// Sums the wall time of each activity between the events of a run. Stages are polled, so a sum of short stages is exact
/// only on average. Devices that work concurrently count separately.
pub(super) struct StageTimes {
    last_event: Instant,
    active: Vec<Activity>,
    seconds: BTreeMap<Activity, f64>,
    finished_cases: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Activity {
    Planning,
    /// No case is active: workers start, or files are written.
    BetweenGroups,
    Working(Stage),
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Planning => f.pad("finding devices, planning"),
            Self::BetweenGroups => f.pad("starting workers, writing files"),
            Self::Working(stage) => stage.fmt(f),
        }
    }
}

impl StageTimes {
    /// Starts with the planning of a run.
    pub(super) fn new(started: Instant) -> Self {
        Self { last_event: started, active: vec![Activity::Planning], seconds: BTreeMap::new(), finished_cases: 0 }
    }

    /// Charges the time since the last event to the activities in progress, and updates them.
    pub(super) fn on_event(&mut self, event: &RunEvent, now: Instant) {
        self.charge(now);
        let is_concurrent = self.active.len() > 1;
        match event {
            RunEvent::RunStarted { .. } => self.active = vec![Activity::BetweenGroups],
            RunEvent::GroupFinished if !is_concurrent => self.active = vec![Activity::BetweenGroups],
            RunEvent::Progress { stage, .. } if !is_concurrent => self.active = vec![Activity::Working(*stage)],
            RunEvent::ActiveStages(stages) => {
                self.active = stages.iter().map(|(_, stage)| Activity::Working(*stage)).collect();
            }
            RunEvent::CaseFinished(_) => self.finished_cases += 1,
            RunEvent::GroupFinished | RunEvent::Progress { .. } => {}
        }
    }

    fn charge(&mut self, now: Instant) {
        let elapsed = now.duration_since(self.last_event).as_secs_f64();
        self.active.iter().for_each(|activity| *self.seconds.entry(*activity).or_default() += elapsed);
        self.last_event = now;
    }

    /// Table of all activities up to `now`, and the time per case that is neither warm-up nor measurement.
    pub(super) fn table(mut self, now: Instant) -> String {
        self.charge(now);
        let total: f64 = self.seconds.values().sum();
        let row = |name: &dyn fmt::Display, seconds: f64| {
            format!("  {name:<31}{seconds:>9.2} s{:>6.1} %\n", 100.0 * seconds / total.max(f64::MIN_POSITIVE))
        };
        let mut text = String::from("wall time by stage\n");
        text.extend(self.seconds.iter().map(|(activity, &seconds)| row(activity, seconds)));
        text += &row(&"total", total);
        let is_timed = |activity: &Activity| matches!(activity, Activity::Working(Stage::WarmUp | Stage::Measure));
        let timed: f64 =
            self.seconds.iter().filter(|(activity, _)| is_timed(activity)).map(|(_, seconds)| seconds).sum();
        if self.finished_cases > 0 {
            let each = (total - timed) / f64::from(self.finished_cases);
            text += &format!("{each:.2} s per case in addition to warming up and measuring\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::{Case, CaseId, Status};
    use calorimeter_sinks::Record;
    use std::time::Duration;

    fn progress(stage: Stage) -> RunEvent {
        RunEvent::Progress { case: CaseId::default(), stage }
    }

    fn table(events: &[(f64, RunEvent)], end: f64) -> String {
        let start = Instant::now();
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let mut times = StageTimes::new(start);
        events.iter().for_each(|(seconds, event)| times.on_event(event, at(*seconds)));
        times.table(at(end))
    }

    #[test]
    fn time_belongs_to_the_stage_before_an_event() {
        let finished = || RunEvent::CaseFinished(Box::new(Record::new(Case::default(), Status::Ok)));
        let events = [
            (1.0, RunEvent::RunStarted { cases: 2, finished: Vec::new() }),
            (1.5, progress(Stage::Open)),
            (2.0, progress(Stage::Measure)),
            (4.0, progress(Stage::Check)),
            (5.0, finished()),
            (5.0, finished()),
            (5.0, RunEvent::GroupFinished),
        ];
        let expected = "\
wall time by stage
  finding devices, planning           1.00 s  18.2 %
  starting workers, writing files     1.00 s  18.2 %
  preparing                           0.50 s   9.1 %
  checking                            1.00 s  18.2 %
  measuring                           2.00 s  36.4 %
  total                               5.50 s 100.0 %
1.75 s per case in addition to warming up and measuring
";
        assert_eq!(table(&events, 5.5), expected);
    }

    #[test]
    fn concurrent_devices_count_separately() {
        let stages = |first, second| {
            RunEvent::ActiveStages(vec![(CaseId::from("a".to_owned()), first), (CaseId::from("b".to_owned()), second)])
        };
        let events = [
            (0.0, RunEvent::RunStarted { cases: 2, finished: Vec::new() }),
            (0.0, stages(Stage::Open, Stage::Measure)),
            (0.0, progress(Stage::Open)),
            (2.0, stages(Stage::Measure, Stage::Measure)),
            (2.0, progress(Stage::Measure)),
        ];
        let shown = table(&events, 3.0);
        assert!(shown.contains("preparing                           2.00 s  33.3 %"), "{shown}");
        assert!(shown.contains("measuring                           4.00 s  66.7 %"), "{shown}");
    }
}
