//! Legend of a table: one line per term, printed when the term first occurs.

use super::escape;
use calorimeter_case::record::{Record, Status};
use std::collections::HashSet;

/// Terms that are explained already.
#[derive(Clone, Debug, Default)]
pub(super) struct Legend {
    explained: HashSet<Term>,
    /// Names of hidden columns that are reported already.
    hidden: HashSet<String>,
}

/// Term of a table that needs an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Term {
    Interval,
    Speedup,
    Sqnr,
    Verdict,
    NotConverged,
    Throttled,
    LaunchBound,
}

impl Term {
    /// Terms with a line in the legend; [`Self::NotConverged`] is part of the line of [`Self::Interval`].
    const EXPLAINED: [Self; 6] =
        [Self::Interval, Self::Speedup, Self::Sqnr, Self::Verdict, Self::Throttled, Self::LaunchBound];

    /// Terms in the column of remarks.
    pub const REMARKS: [Self; 3] = [Self::Throttled, Self::LaunchBound, Self::NotConverged];

    /// Word in the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Interval => "±",
            Self::Speedup => "speed-up",
            Self::Sqnr => "SQNR",
            Self::Verdict => "verdict",
            Self::NotConverged => "not converged",
            Self::Throttled => "throttled",
            Self::LaunchBound => "launch-bound",
        }
    }

    /// True if the row of a record contains the term.
    pub fn applies_to(self, record: &Record) -> bool {
        let (time, speedup) = (&record.time, record.speedup.as_ref());
        match self {
            Self::Interval => time.time_ns.is_some_and(|time| time.lo.is_some()),
            Self::Speedup | Self::Verdict => speedup.is_some(),
            Self::Sqnr => record.accuracy.as_ref().is_some_and(|accuracy| accuracy.sqnr_db.is_some()),
            Self::NotConverged => time.converged == Some(false),
            Self::Throttled => time.in_turns_ns.is_some(),
            Self::LaunchBound => time.launch_bound == Some(true),
        }
    }

    fn explanation(self, records: &[Record]) -> String {
        match self {
            Self::Interval | Self::NotConverged => {
                "half width of the 95 % interval; not converged if too wide or drifting".into()
            }
            Self::Speedup => baseline(records),
            Self::Sqnr => "signal to quantization noise ratio in dB; higher is better".into(),
            Self::Verdict => {
                let margin = records.iter().find_map(|record| record.speedup.as_ref()?.margin);
                let margin = margin
                    .map_or_else(|| "the margin".into(), |margin| format!("{} %", (1e4 * margin).round() / 100.0));
                format!("SAME is within {margin}; UNCLEAR has too wide an interval")
            }
            Self::Throttled => "slowed by a power or heat limit, so timed in isolation".into(),
            Self::LaunchBound => "the host takes about as long to launch as the device to execute".into(),
        }
    }
}

impl Legend {
    /// Explains the terms of a table that are not explained yet, and names its hidden columns.
    pub fn lines(&mut self, records: &[Record], hidden: &[String]) -> Vec<String> {
        let measured = |record: &&Record| record.outcome.status == Status::Ok;
        let occurs = |term: Term| records.iter().filter(measured).any(|record| term.applies_to(record));
        let is_new = |term: &Term| {
            occurs(*term) && !hidden.iter().any(|name| name == term.word()) && self.explained.insert(*term)
        };
        let terms: Vec<Term> = Term::EXPLAINED.into_iter().filter(is_new).collect();
        let hidden: Vec<String> = hidden.iter().filter(|name| self.hidden.insert((*name).clone())).cloned().collect();
        let lines = terms.into_iter().map(|term| format!("{}: {}", term.word(), term.explanation(records)));
        lines.chain(hidden_columns(&hidden)).collect()
    }
}

/// Names hidden columns, if any.
pub(super) fn hidden_columns(names: &[String]) -> Option<String> {
    let mut unique = HashSet::new();
    let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| unique.insert(*name)).collect();
    (!names.is_empty()).then(|| format!("hidden columns (see results.csv): {}", names.join(", ")))
}

/// Baseline of the speed-ups of a table.
fn baseline(records: &[Record]) -> String {
    let implementation =
        |id| records.iter().find(|record| record.case.id == id).map(|record| record.case.implementation);
    let unquantized = records.iter().filter(|record| record.case.is_baseline());
    let reference = unquantized.filter_map(|record| implementation(record.speedup.as_ref()?.vs.clone())).next();
    let has_recipes = records.iter().any(|record| !record.case.mode.is_operator());
    let text = match (has_recipes, reference) {
        (true, Some(name)) => format!("over recipe baseline in the same impl; baseline itself: over {name}"),
        (true, None) => "over recipe baseline in the same impl".into(),
        (false, Some(name)) => format!("over {name}"),
        (false, None) => "over the first program".into(),
    };
    escape(&text).into_owned()
}
