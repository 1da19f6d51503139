//! Training passes, by model, shape and implementation.

use calorimeter_case::Mode;
use calorimeter_case::record::Record;

use super::bars::{BarColumn, BarLength, BarRow, BarTable};
use super::number_format::{format_ratio, time};
use super::picture::Picture;
use super::report_rows::{ReportRows, distinct, geometric_mean, group_by, median, nanos, speedup};

/// Suffixes of workload names, in the order of a training step.
const PASS_SUFFIXES: [&str; 7] =
    ["_forward", "_backward", "_forward_backward", "_adamw", "_sgd", "_adamw_step", "_sgd_step"];

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let timed = rows.filtered(|record| record.case.mode == Mode::Training && nanos(record).is_some());
    let mut passes = distinct(timed.iter().map(|row| pass_index(row.record)));
    passes.sort_unstable();
    let lines: Vec<BarRow> = group_by(timed.into_iter(), |row| (model(row.record), row.item_and_implementation()))
        .into_iter()
        .map(|((model, who), group)| {
            let of_pass = |pass| {
                let own = || group.iter().map(|row| row.record).filter(move |record| pass_index(record) == pass);
                [
                    median(own().filter_map(nanos)).map(|nanos| (nanos, time(nanos))),
                    geometric_mean(own().filter_map(speedup)).map(|ratio| (ratio, format_ratio(ratio))),
                ]
            };
            BarRow {
                name: format!("{model} · {who}"), values: passes.iter().flat_map(|pass| of_pass(*pass)).collect()
            }
        })
        .collect();
    let of_pass = |pass: &Option<usize>| {
        let head = pass.map_or("pass", |place| PASS_SUFFIXES[place].trim_start_matches('_'));
        let (time, ratio) = (BarLength::Amount, BarLength::Ratio);
        [BarColumn { header: head.into(), length: time }, BarColumn { header: "speed-up".into(), length: ratio }]
    };
    let columns = passes.iter().flat_map(of_pass).collect();
    let title = "Training: median time of each pass, and speed-up over the pass of the baseline".into();
    (!lines.is_empty()).then(|| Picture::Bars(BarTable { title, columns, rows: lines }.without_empty_columns()))
}

/// Index of the pass in [`PASS_SUFFIXES`].
fn pass_index(record: &Record) -> Option<usize> {
    PASS_SUFFIXES.iter().rposition(|end| record.case.workload.as_str().ends_with(end))
}

/// Model and its shape.
fn model(record: &Record) -> String {
    let name = record.case.workload.as_str();
    let model = pass_index(record).and_then(|place| name.strip_suffix(PASS_SUFFIXES[place])).unwrap_or(name);
    format!("{model} {}", record.case.shape)
}
