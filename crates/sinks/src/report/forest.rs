//! Lines of the forest plot: the speed-up of each case with its interval, by comparison group.

use std::collections::HashMap;

use serde::Serialize;

use super::derived_columns::{item_and_implementation, text};
use super::report_rows::{ReportRow, ReportRows, distinct, group_by, speedup};
use crate::record::Record;

/// Cases that are compared with one reference case, fastest first.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ForestGroup {
    /// Properties that the cases share, and the reference; empty if each case has its own reference.
    pub(super) heading: String,
    pub(super) lines: Vec<ForestLine>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ForestLine {
    /// Index of the record among all records.
    pub(super) row: usize,
    pub(super) name: String,
}

/// Groups in the order of the records. If each group has one case, all cases form one group.
pub(super) fn forest_groups(rows: &ReportRows<'_>) -> Vec<ForestGroup> {
    let compared: Vec<(usize, ReportRow<'_>)> =
        rows.indexed().filter(|(_, row)| row.record.is_ok() && speedup(row.record).is_some()).collect();
    let references: HashMap<Reference<'_>, &Record> =
        rows.indexed().map(|(_, row)| ((row.run, &*row.record.case.id), row.record)).collect();
    let differs = |name: &&str| distinct(compared.iter().filter_map(|(_, row)| text(name, row.record))).len() > 1;
    let columns: Vec<&str> =
        ["workload", "shape"].into_iter().chain(["dtype", "device", "regime"].into_iter().filter(differs)).collect();
    let context = |row: &ReportRow<'_>| {
        let parts = columns.iter().filter_map(|name| text(name, row.record));
        row.run.map(String::from).into_iter().chain(parts).collect::<Vec<_>>().join(" · ")
    };
    let ratio = |row: &ReportRow<'_>| speedup(row.record).unwrap_or(0.0);
    let mut groups = group_by(compared.iter(), |(_, row)| reference(*row));
    if groups.iter().all(|(_, cases)| cases.len() == 1) {
        let mut cases: Vec<_> = groups.drain(..).flat_map(|(_, cases)| cases).collect();
        cases.sort_by(|(_, one), (_, other)| ratio(other).total_cmp(&ratio(one)));
        let line = |(row, case): &(usize, ReportRow<'_>)| {
            let parts = [item_and_implementation(case.record), context(case)];
            // The item of an operator is its workload.
            let parts = distinct(parts.join(" · ").split(" · ").map(String::from));
            ForestLine { row: *row, name: parts.join(" · ") }
        };
        let lines: Vec<ForestLine> = cases.into_iter().map(line).collect();
        return if lines.is_empty() { Vec::new() } else { vec![ForestGroup { heading: String::new(), lines }] };
    }
    let group = |(key, mut cases): (Option<Reference<'_>>, Vec<&(usize, ReportRow<'_>)>)| {
        cases.sort_by(|(_, one), (_, other)| ratio(other).total_cmp(&ratio(one)));
        let reference = key.and_then(|key| references.get(&key)).map(|record| item_and_implementation(record));
        let over = reference.map_or_else(String::new, |name| format!(", relative to {name}"));
        ForestGroup {
            heading: context(&cases[0].1) + &over,
            lines: cases
                .into_iter()
                .map(|(row, case)| ForestLine { row: *row, name: item_and_implementation(case.record) })
                .collect(),
        }
    };
    groups.into_iter().map(group).collect()
}

/// Run and id of a case that others are compared with.
type Reference<'a> = (Option<&'a str>, &'a str);

fn reference<'a>(row: ReportRow<'a>) -> Option<Reference<'a>> {
    row.record.speedup.as_ref().map(|speedup| (row.run, &*speedup.vs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run::ReportedRun;
    use crate::{Case, Status, StoredRun};
    use calorimeter_case::record::Speedup;
    use std::path::PathBuf;

    fn record(id: &'static str, recipe: &'static str, m: u64, speedup: Option<(&'static str, f64)>) -> Record {
        let shape = [("m", m)].into();
        let case = Case { id: id.into(), workload: "linear".into(), recipe: recipe.into(), shape, ..Case::default() };
        let speedup = speedup.map(|(vs, ratio)| Speedup { vs: vs.into(), ratio, ..Speedup::default() });
        Record { speedup, ..Record::new(case, Status::Ok) }
    }

    fn groups(records: Vec<Record>) -> Vec<(String, Vec<(usize, String)>)> {
        let read = StoredRun { header: None, resumed: Vec::new(), records };
        let runs =
            [ReportedRun { name: "run".into(), dir: PathBuf::new(), read, windows: HashMap::new(), means: Vec::new() }];
        let groups = forest_groups(&ReportRows::new(&runs)).into_iter();
        groups
            .map(|group| (group.heading, group.lines.into_iter().map(|line| (line.row, line.name)).collect()))
            .collect()
    }

    #[test]
    fn cases_are_sorted_within_their_comparison_group() {
        let found = groups(vec![
            record("a", "baseline", 8, None),
            record("b", "int8wo", 8, Some(("a", 1.5))),
            record("c", "mxfp8", 8, Some(("a", 2.0))),
            record("d", "baseline", 16, None),
            record("e", "int8wo", 16, Some(("d", 0.5))),
        ]);
        let line = |row: usize, name: &str| (row, name.to_owned());
        let expected = [
            ("linear · m8, relative to baseline · eager", vec![line(2, "mxfp8 · eager"), line(1, "int8wo · eager")]),
            ("linear · m16, relative to baseline · eager", vec![line(4, "int8wo · eager")]),
        ];
        assert_eq!(found, expected.map(|(heading, lines)| (heading.to_owned(), lines)));
    }

    #[test]
    fn single_comparisons_form_one_group() {
        let found = groups(vec![
            record("a", "baseline", 8, None),
            record("b", "int8wo", 8, Some(("a", 0.5))),
            record("c", "int8wo", 16, Some(("gone", 2.0))),
        ]);
        let names =
            vec![(2, "int8wo · eager · linear · m16".to_owned()), (1, "int8wo · eager · linear · m8".to_owned())];
        assert_eq!(found, [(String::new(), names)]);
        assert!(groups(vec![record("a", "baseline", 8, None)]).is_empty());
    }
}
