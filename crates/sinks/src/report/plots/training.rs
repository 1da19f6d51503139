//! Training passes, by model, shape and implementation.

use calorimeter_case::Mode;
use calorimeter_case::record::Record;

use super::bars::{Bars, Column, Length, Line};
use super::figures::{time, times};
use super::picture::Picture;
use super::rows::{Rows, distinct, grouped, mean, median, nanos, speedup};

/// Suffixes of workload names, in the order of a training step.
const ORDER: [&str; 7] = ["_forward", "_backward", "_forward_backward", "_adamw", "_sgd", "_adamw_step", "_sgd_step"];

pub(super) fn picture(rows: &Rows<'_>) -> Option<Picture> {
    let timed = rows.with(|record| record.case.mode == Mode::Training && nanos(record).is_some());
    let mut passes = distinct(timed.iter().map(|row| place(row.record)));
    passes.sort_unstable();
    let lines: Vec<Line> = grouped(timed.into_iter(), |row| (model(row.record), row.who()))
        .into_iter()
        .map(|((model, who), group)| {
            let of_pass = |pass| {
                let own = || group.iter().map(|row| row.record).filter(move |record| place(record) == pass);
                [
                    median(own().filter_map(nanos)).map(|nanos| (nanos, time(nanos))),
                    mean(own().filter_map(speedup)).map(|ratio| (ratio, times(ratio))),
                ]
            };
            Line { name: format!("{model} · {who}"), figures: passes.iter().flat_map(|pass| of_pass(*pass)).collect() }
        })
        .collect();
    let of_pass = |pass: &Option<usize>| {
        let head = pass.map_or("pass", |place| ORDER[place].trim_start_matches('_'));
        let (time, ratio) = (Length::Amount, Length::Ratio);
        [Column { head: head.into(), length: time }, Column { head: "speed-up".into(), length: ratio }]
    };
    let columns = passes.iter().flat_map(of_pass).collect();
    let title = "Training: median time of each pass, and speed-up over the pass of the baseline".into();
    (!lines.is_empty()).then(|| Picture::Bars(Bars { title, columns, lines }.without_empty()))
}

/// Index of the pass in [`ORDER`].
fn place(record: &Record) -> Option<usize> {
    ORDER.iter().rposition(|end| record.case.workload.as_str().ends_with(end))
}

/// Model and its shape.
fn model(record: &Record) -> String {
    let name = record.case.workload.as_str();
    let model = place(record).and_then(|place| name.strip_suffix(ORDER[place])).unwrap_or(name);
    format!("{model} {}", record.case.shape)
}
