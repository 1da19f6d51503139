//! Legend of a table: one line per term, printed when the line first applies.

use super::escape;
use calorimeter_case::CaseId;
use calorimeter_case::record::{Record, Status};
use std::collections::HashSet;

/// Lines and names of hidden columns that are printed already. Lines differ by group: a margin belongs to a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Legend {
    printed: HashSet<String>,
}

/// Term of a table that needs an explanation.
#[derive(Clone, Copy, Debug)]
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
    pub(super) const REMARKS: [Self; 3] = [Self::Throttled, Self::LaunchBound, Self::NotConverged];

    /// Word in the table.
    pub(super) fn word(self) -> &'static str {
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
    pub(super) fn applies_to(self, record: &Record) -> bool {
        let (time, speedup) = (&record.time, record.speedup.as_ref());
        match self {
            Self::Interval => {
                time.time_ns.is_some_and(|time| time.lo.is_some()) || Self::NotConverged.applies_to(record)
            }
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
                "half width of the 95 % interval; not converged if wider than requested".into()
            }
            Self::Speedup => references(records),
            Self::Sqnr => "signal to quantization noise ratio in dB; higher is better".into(),
            Self::Verdict => {
                let margin = records.iter().find_map(|record| record.speedup.as_ref()?.margin);
                let margin = margin
                    .map_or_else(|| "the margin".into(), |margin| format!("{} %", (1e4 * margin).round() / 100.0));
                format!("SAME is within {margin}; UNCLEAR has too wide an interval")
            }
            Self::Throttled => {
                "a power or temperature limit slowed the device, so the group was timed in isolation".into()
            }
            Self::LaunchBound => "the host takes about as long to launch as the device to execute, or longer".into(),
        }
    }
}

impl Legend {
    /// Explains the terms of a table, and names its hidden columns. Omits what is printed already.
    pub(super) fn lines(&mut self, records: &[Record], hidden: &[String]) -> Vec<String> {
        let measured = || records.iter().filter(|record| record.outcome.status == Status::Ok);
        let is_shown = |term: &Term| {
            measured().any(|record| term.applies_to(record)) && !hidden.iter().any(|name| name == term.word())
        };
        let terms = Term::EXPLAINED.into_iter().filter(is_shown);
        let lines = terms.map(|term| format!("{}: {}", term.word(), term.explanation(records)));
        let mut lines: Vec<String> = lines.filter(|line| self.is_new(line)).collect();
        let hidden: Vec<String> = hidden.iter().filter(|name| self.printed.insert((*name).clone())).cloned().collect();
        lines.extend(hidden_columns(&hidden));
        lines
    }

    /// True for a line that no printed line equals or continues after a semicolon.
    fn is_new(&mut self, line: &str) -> bool {
        let contains =
            |known: &String| known.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(';'));
        !self.printed.iter().any(contains) && self.printed.insert(line.to_owned())
    }
}

/// Names hidden columns, if any.
pub(super) fn hidden_columns(names: &[String]) -> Option<String> {
    let mut unique = HashSet::new();
    let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| unique.insert(*name)).collect();
    (!names.is_empty()).then(|| format!("hidden columns (wider terminal or results.csv): {}", names.join(", ")))
}

/// References of the speed-ups of a table.
fn references(records: &[Record]) -> String {
    let implementation = |id: &CaseId| {
        let found = records.iter().find(|record| record.case.id == *id);
        found.map_or_else(|| id.to_string(), |record| record.case.implementation.to_string())
    };
    let reference = |record: &Record| record.speedup.as_ref().map(|speedup| implementation(&speedup.vs));
    let (unquantized, recipes): (Vec<&Record>, Vec<&Record>) =
        records.iter().partition(|record| record.case.is_baseline());
    let direct = unquantized.iter().find_map(|record| reference(record));
    let text = if recipes.is_empty() {
        format!("over {}", direct.unwrap_or_default())
    } else {
        // A recipe in an implementation without a baseline has the baseline of another implementation.
        let is_other = |name: &String, record: &Record| *name != record.case.implementation.to_string();
        let other = recipes.iter().find_map(|record| reference(record).filter(|name| is_other(name, record)));
        let other = other.map_or_else(String::new, |name| format!(", or in {name}"));
        let direct = direct.map_or_else(String::new, |name| format!("; baseline itself: over {name}"));
        format!("over recipe baseline in the same impl{other}{direct}")
    };
    escape(&text).into_owned()
}
