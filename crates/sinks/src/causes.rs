//! Reasons of cases without time, and warnings, each with a count.

use std::cmp::Reverse;
use std::collections::HashMap;

use calorimeter_case::record::{Record, Status};

/// Cases with equal status and reason.
pub(crate) struct Cause<'a> {
    pub(crate) status: Status,
    pub(crate) reason: &'a str,
    pub(crate) ids: Vec<&'a str>,
}

/// Groups the records without time by status and reason.
pub(crate) fn causes<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Cause<'a>> {
    let ends = records
        .into_iter()
        .map(|Record { case, outcome, .. }| (outcome.status, outcome.reason.as_deref().unwrap_or_default(), &*case.id));
    group_causes(ends)
}

/// Groups (status, reason, case id) by status and reason. Ordered by severity of the status, then by descending count.
pub(crate) fn group_causes<'a>(ends: impl IntoIterator<Item = (Status, &'a str, &'a str)>) -> Vec<Cause<'a>> {
    let mut causes: Vec<Cause> = Vec::new();
    let mut index_of: HashMap<(Status, &str), usize> = HashMap::new();
    for (status, reason, id) in ends.into_iter().filter(|(status, ..)| *status != Status::Ok) {
        let index = *index_of.entry((status, reason)).or_insert(causes.len());
        if index == causes.len() {
            causes.push(Cause { status, reason, ids: Vec::new() });
        }
        causes[index].ids.push(id);
    }
    let rank = |status| Status::ALL.iter().position(|known| *known == status);
    causes.sort_by_key(|cause| (rank(cause.status), Reverse(cause.ids.len())));
    causes
}

/// Counts equal texts, most frequent first.
pub(crate) fn count_texts<'a>(given: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut warnings: Vec<(&str, usize)> = Vec::new();
    let mut index_of = HashMap::new();
    for warning in given {
        let index = *index_of.entry(warning).or_insert(warnings.len());
        if index == warnings.len() {
            warnings.push((warning, 0));
        }
        warnings[index].1 += 1;
    }
    warnings.sort_by_key(|(_, count)| Reverse(*count));
    warnings
}
