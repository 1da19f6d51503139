//! Summary of a report: status counts, mean speed-ups, and reasons for missing times.

use calorimeter_case::Verdict;
use serde::Serialize;

use super::run::{MeanSpeedup, SummarizedRun};
use crate::causes::{count_texts, group_causes};
use crate::record::SuiteSpeedup;
use crate::{CaseExcerpt, Status};

/// Summary of all runs.
#[derive(Serialize)]
pub(super) struct ReportSummary<'a> {
    pub(super) cases: usize,
    /// Number of cases per status, without zeros.
    pub(super) statuses: Vec<(Status, usize)>,
    pub(super) means: Vec<MeanLine<'a>>,
    pub(super) causes: Vec<CauseLine<'a>>,
    pub(super) warnings: Vec<(&'a str, usize)>,
}

#[derive(Serialize)]
pub(super) struct MeanLine<'a> {
    /// Index of the run.
    pub(super) run: usize,
    #[serde(flatten)]
    pub(super) together: &'a SuiteSpeedup,
    /// Number of cases per verdict, without zeros.
    pub(super) verdicts: Vec<(Verdict, usize)>,
    pub(super) best: Extreme<'a>,
    pub(super) worst: Extreme<'a>,
}

/// Case with the maximum or minimum speed-up.
#[derive(Serialize)]
pub(super) struct Extreme<'a> {
    /// Index of the record among all runs.
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
    /// Ids of the first few cases.
    pub(super) examples: Vec<&'a str>,
}

const MAX_EXAMPLES: usize = 3;

impl<'a> ReportSummary<'a> {
    pub(super) fn new(runs: &'a [SummarizedRun]) -> Self {
        let briefs = || runs.iter().flat_map(|run| &run.cases);
        let ended = |status| briefs().filter(|brief| brief.status == status).count();
        let statuses = Status::ALL.map(|status| (status, ended(status)));
        let mut first = 0;
        let mut means = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            means.extend(run.means.iter().filter_map(|mean| mean_line(place, mean, &run.cases, first)));
            first += run.cases.len();
        }
        let ends = briefs().map(|brief| (brief.status, brief.reason.as_deref().unwrap_or_default(), &*brief.id));
        let causes = group_causes(ends).into_iter().map(|cause| CauseLine {
            status: cause.status,
            reason: cause.reason,
            cases: cause.ids.len(),
            examples: cause.ids.into_iter().take(MAX_EXAMPLES).collect(),
        });
        Self {
            cases: first,
            statuses: statuses.into_iter().filter(|(_, count)| *count > 0).collect(),
            means,
            causes: causes.collect(),
            warnings: count_texts(briefs().flat_map(|brief| &brief.warnings).map(String::as_str)),
        }
    }
}

/// Line of a mean; `first` is the index of the run's first record.
fn mean_line<'a>(run: usize, mean: &'a MeanSpeedup, cases: &'a [CaseExcerpt], first: usize) -> Option<MeanLine<'a>> {
    let ratio = |place: usize| Some(cases.get(place)?.speedup?.ratio);
    // Ties: the last is the best and the first the worst.
    let by_ratio = |one: &&usize, other: &&usize| ratio(**one).unwrap_or(0.0).total_cmp(&ratio(**other).unwrap_or(0.0));
    let extreme = |place: &usize| {
        let case = cases.get(*place)?;
        Some(Extreme { row: first + place, id: &case.id, shape: case.shape.to_string(), ratio: case.speedup?.ratio })
    };
    let best = extreme(mean.record_indices.iter().max_by(by_ratio)?)?;
    let worst = extreme(mean.record_indices.iter().min_by(by_ratio)?)?;
    let verdict = |place: &usize| Some(cases.get(*place)?.speedup?.verdict);
    let reached = |wanted| mean.record_indices.iter().filter(|place| verdict(place) == Some(wanted)).count();
    let verdicts = Verdict::ALL.map(|wanted| (wanted, reached(wanted)));
    let verdicts = verdicts.into_iter().filter(|(_, count)| *count > 0).collect();
    Some(MeanLine { run, together: &mean.speedup, verdicts, best, worst })
}
