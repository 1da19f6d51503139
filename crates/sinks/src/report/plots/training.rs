//! The passes of training side by side, shape by shape.

use calorimeter_case::Mode;

use super::bars::{Bars, Column, Length, Line};
use super::figures::{time, times};
use super::picture::Picture;
use super::rows::{Rows, distinct, grouped, mean, median, nanos, speedup};

/// In the order in which a step has them.
const ORDER: [&str; 7] = ["_forward", "_backward", "_forward_backward", "_adamw", "_sgd", "_adamw_step", "_sgd_step"];

pub(super) fn picture(rows: &Rows<'_>) -> Option<Picture> {
    let timed = rows.with(|record| record.case.mode == Mode::Training && nanos(record).is_some());
    let mut passes = distinct(timed.iter().map(|row| row.record.case.workload));
    passes.sort_by_key(|pass| ORDER.iter().rposition(|end| pass.as_str().ends_with(end)));
    let lines: Vec<Line> = grouped(timed.into_iter(), |row| (row.record.case.shape.to_string(), row.who()))
        .into_iter()
        .map(|((shape, who), group)| {
            let of_pass = |pass| {
                let own = || group.iter().map(|row| row.record).filter(move |record| record.case.workload == pass);
                [
                    median(own().filter_map(nanos)).map(|nanos| (nanos, time(nanos))),
                    mean(own().filter_map(speedup)).map(|ratio| (ratio, times(ratio))),
                ]
            };
            Line { name: format!("{shape} · {who}"), figures: passes.iter().flat_map(|pass| of_pass(*pass)).collect() }
        })
        .collect();
    let of_pass = |pass: &calorimeter_case::Name| {
        let (time, ratio) = (Length::Amount, Length::Ratio);
        [Column { head: pass.to_string(), length: time }, Column { head: "speed-up".into(), length: ratio }]
    };
    let columns = passes.iter().flat_map(of_pass).collect();
    let title = "Training: the middle time of each pass, and the speed-up over the same pass of the baseline".into();
    (!lines.is_empty()).then(|| Picture::Bars(Bars { title, columns, lines }.without_empty()))
}
