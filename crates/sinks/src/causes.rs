//! Why cases have no time, and what was warned of: once each, with a count.

use std::cmp::Reverse;
use std::collections::HashMap;

use calorimeter_case::record::{Record, Status};

/// Cases that ended alike.
pub(crate) struct Cause<'a> {
    pub(crate) status: Status,
    pub(crate) reason: &'a str,
    pub(crate) ids: Vec<&'a str>,
}

/// Those of records.
pub(crate) fn causes<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Cause<'a>> {
    let ends = records
        .into_iter()
        .map(|Record { case, outcome, .. }| (outcome.status, outcome.reason.as_deref().unwrap_or_default(), &*case.id));
    causes_of(ends)
}

/// Of the status, the reason and the id of each case. What went wrong comes first, what was never going to run after it; the
/// more frequent before the rarer.
pub(crate) fn causes_of<'a>(ends: impl IntoIterator<Item = (Status, &'a str, &'a str)>) -> Vec<Cause<'a>> {
    let mut causes: Vec<Cause> = Vec::new();
    let mut place_of: HashMap<(Status, &str), usize> = HashMap::new();
    for (status, reason, id) in ends.into_iter().filter(|(status, ..)| *status != Status::Ok) {
        let place = *place_of.entry((status, reason)).or_insert(causes.len());
        if place == causes.len() {
            causes.push(Cause { status, reason, ids: Vec::new() });
        }
        causes[place].ids.push(id);
    }
    let rank = |status| Status::ALL.iter().position(|known| *known == status);
    causes.sort_by_key(|cause| (rank(cause.status), Reverse(cause.ids.len())));
    causes
}

/// How often each warning of records was given, the most frequent first.
pub(crate) fn warnings<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<(&'a str, usize)> {
    counted(records.into_iter().flat_map(|record| &record.outcome.warnings))
}

/// How often each was given, the most frequent first.
pub(crate) fn counted<'a>(given: impl IntoIterator<Item = &'a String>) -> Vec<(&'a str, usize)> {
    let mut warnings: Vec<(&str, usize)> = Vec::new();
    let mut place_of = HashMap::new();
    for warning in given {
        let place = *place_of.entry(warning).or_insert(warnings.len());
        if place == warnings.len() {
            warnings.push((warning, 0));
        }
        warnings[place].1 += 1;
    }
    warnings.sort_by_key(|(_, count)| Reverse(*count));
    warnings
}
