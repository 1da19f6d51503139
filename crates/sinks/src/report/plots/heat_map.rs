//! Geometric means of speed-ups over two axes, chosen as on the page.

use std::cmp::Ordering;

use super::grid::HeatMapGrid;
use super::picture::Picture;
use crate::report::derived_columns::{label, text};
use crate::report::report_rows::{ReportRow, ReportRows, distinct, geometric_mean, group_by, speedup};

/// Sorts sizes and shapes numerically; other labels stay in order of first occurrence, with the baseline first.
fn sort_labels(mut names: Vec<String>, is_size: bool) -> Vec<String> {
    if is_size {
        names.sort_by(|one, other| compare_numerically(one, other));
    } else {
        names.sort_by_key(|name| name != "baseline");
    }
    names
}

/// Compares texts by the numbers in them.
fn compare_numerically(one: &str, other: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    numbers(one).cmp(&numbers(other)).then_with(|| one.cmp(other))
}

/// Columns of rows and columns that are shown first.
pub(in crate::report) fn default_axes<'a>(rows: &ReportRows<'a>) -> [&'a str; 2] {
    let compared = compared(rows);
    let differs = |name: &&str| distinct(compared.iter().filter_map(|row| text(name, row.record))).len() > 1;
    let down = ["item", "workload", "implementation", "shape"].into_iter().find(differs).unwrap_or("item");
    if down == "shape" {
        // For a single recipe the shapes form one column; over one of their axes only a diagonal would be filled.
        return [down, "series"];
    }
    let all = ["implementation"].into_iter().chain(rows.axes()).chain(["shape", "workload", "device", "dtype"]);
    [down, all.filter(|name| *name != down).find(differs).unwrap_or("implementation")]
}

fn compared<'a>(rows: &ReportRows<'a>) -> Vec<ReportRow<'a>> {
    rows.filtered(|record| speedup(record).is_some())
}

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let compared = compared(rows);
    if compared.is_empty() {
        return None;
    }
    let [down, across] = default_axes(rows);
    let axes = rows.axes();
    let names = |name: &str| {
        let names = distinct(compared.iter().filter_map(|row| text(name, row.record)));
        sort_labels(names, name == "shape" || axes.contains(&name))
    };
    let (rows, columns) = (names(down), names(across));
    let inside = group_by(compared.iter(), |row| (text(down, row.record), text(across, row.record)));
    let cell = |row: &String, column: &String| {
        let key = (Some(row.clone()), Some(column.clone()));
        let (_, cases) = inside.iter().find(|(known, _)| *known == key)?;
        Some((geometric_mean(cases.iter().filter_map(|row| speedup(row.record)))?, cases.len()))
    };
    let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
    let axes = [down, across].map(|name| label(name).to_owned());
    Some(Picture::Grid(HeatMapGrid { title: "Mean speed-ups".into(), axes, rows, columns, cells }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoredRun;
    use crate::report::run::ReportedRun;
    use calorimeter_case::record::Speedup;
    use calorimeter_case::{Case, Record, Status};
    use std::collections::HashMap;
    use std::path::PathBuf;

    #[test]
    fn labels_are_sorted_numerically_after_the_baseline() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(sort_labels(names(&["16", "8", "128"]), true), ["8", "16", "128"]);
        assert_eq!(sort_labels(names(&["m16-k8", "m8-k16", "m8-k8"]), true), ["m8-k8", "m8-k16", "m16-k8"]);
        assert_eq!(sort_labels(names(&["mxfp8", "baseline", "int8wo"]), false), ["baseline", "mxfp8", "int8wo"]);
    }

    #[test]
    fn columns_of_an_axis_are_sorted_numerically() {
        let cases = [16, 8, 128].into_iter().flat_map(|m| ["mxfp8", "int8wo"].map(|recipe| (m, recipe)));
        let record = |(m, recipe): (u64, &'static str)| {
            let case = Case { recipe: recipe.into(), shape: [("m", m)].into(), ..Case::default() };
            let speedup = Some(Speedup { ratio: 2.0, ..Speedup::default() });
            Record { speedup, ..Record::new(case, Status::Ok) }
        };
        let read = StoredRun { header: None, resumed: Vec::new(), records: cases.map(record).collect() };
        let runs =
            [ReportedRun { name: "run".into(), dir: PathBuf::new(), read, windows: HashMap::new(), means: Vec::new() }];
        let Some(Picture::Grid(grid)) = picture(&ReportRows::new(&runs)) else { panic!("no heat map") };
        assert_eq!(grid.rows, ["mxfp8", "int8wo"]);
        assert_eq!(grid.columns, ["8", "16", "128"]);
    }
}
