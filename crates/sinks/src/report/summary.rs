//! The figures that stand first: how the cases ended, what each recipe buys, and why something has no time.

use serde::Serialize;

use super::run::{Mean, ReportedRun, records};
use crate::Status;
use crate::causes::{causes, warnings};
use crate::record::{Record, SuiteSpeedup};

/// What a reader should know before anything else.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    pub(super) cases: usize,
    /// How many ended how; a way in which none ended is not listed.
    pub(super) statuses: Vec<(Status, usize)>,
    pub(super) means: Vec<MeanLine<'a>>,
    pub(super) causes: Vec<CauseLine<'a>>,
    pub(super) warnings: Vec<(&'a str, usize)>,
}

#[derive(Serialize)]
pub(super) struct MeanLine<'a> {
    /// The place of its run.
    pub(super) run: usize,
    #[serde(flatten)]
    pub(super) together: &'a SuiteSpeedup,
    pub(super) best: Extreme<'a>,
    pub(super) worst: Extreme<'a>,
}

/// The case with the highest or the lowest of several speed-ups.
#[derive(Serialize)]
pub(super) struct Extreme<'a> {
    /// Its place among the records of all runs.
    pub(super) row: usize,
    pub(super) id: &'a str,
    pub(super) shape: String,
    pub(super) ratio: f64,
}

#[derive(Serialize)]
pub(super) struct CauseLine<'a> {
    pub(super) status: Status,
    pub(super) reason: &'a str,
    pub(super) cases: usize,
    /// A few of them.
    pub(super) examples: Vec<&'a str>,
}

const EXAMPLES: usize = 3;

impl<'a> Summary<'a> {
    pub(super) fn of(runs: &'a [ReportedRun]) -> Self {
        let ended = |status| records(runs).filter(|record| record.outcome.status == status).count();
        let statuses = Status::ALL.map(|status| (status, ended(status)));
        let mut first = 0;
        let mut means = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            means.extend(run.means.iter().filter_map(|mean| line(place, mean, &run.read.records, first)));
            first += run.read.records.len();
        }
        let causes = causes(records(runs)).into_iter().map(|cause| CauseLine {
            status: cause.status,
            reason: cause.reason,
            cases: cause.ids.len(),
            examples: cause.ids.into_iter().take(EXAMPLES).collect(),
        });
        Self {
            cases: first,
            statuses: statuses.into_iter().filter(|(_, count)| *count > 0).collect(),
            means,
            causes: causes.collect(),
            warnings: warnings(records(runs)),
        }
    }
}

/// Where `first` is the place of the run's first record.
fn line<'a>(run: usize, mean: &'a Mean, records: &'a [Record], first: usize) -> Option<MeanLine<'a>> {
    let of = mean.of.iter().filter_map(|&place| {
        let record = records.get(place)?;
        let ratio = record.speedup.as_ref()?.ratio;
        let Record { case, .. } = record;
        Some(Extreme { row: first + place, id: &case.id, shape: case.shape.to_string(), ratio })
    });
    let mut of: Vec<Extreme> = of.collect();
    of.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let best = of.pop()?;
    let worst = match of.into_iter().next() {
        Some(worst) => worst,
        None => Extreme { shape: best.shape.clone(), ..best },
    };
    Some(MeanLine { run, together: &mean.together, best, worst })
}
