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

/// What went wrong comes first, what was never going to run after it; the more frequent before the rarer.
pub(crate) fn causes<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Cause<'a>> {
    let mut causes: Vec<Cause> = Vec::new();
    let mut place_of: HashMap<(Status, &str), usize> = HashMap::new();
    for record in records.into_iter().filter(|record| record.outcome.status != Status::Ok) {
        let reason = record.outcome.reason.as_deref().unwrap_or_default();
        let place = *place_of.entry((record.outcome.status, reason)).or_insert(causes.len());
        if place == causes.len() {
            causes.push(Cause { status: record.outcome.status, reason, ids: Vec::new() });
        }
        causes[place].ids.push(&record.case.id);
    }
    let rank = |status| Status::ALL.iter().position(|known| *known == status);
    causes.sort_by_key(|cause| (rank(cause.status), Reverse(cause.ids.len())));
    causes
}

/// How often each was given, the most frequent first.
pub(crate) fn warnings<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<(&'a str, usize)> {
    let mut warnings: Vec<(&str, usize)> = Vec::new();
    let mut place_of = HashMap::new();
    for warning in records.into_iter().flat_map(|record| &record.outcome.warnings) {
        let place = *place_of.entry(warning).or_insert(warnings.len());
        if place == warnings.len() {
            warnings.push((warning, 0));
        }
        warnings[place].1 += 1;
    }
    warnings.sort_by_key(|(_, count)| Reverse(*count));
    warnings
}
