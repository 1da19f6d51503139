//! Operators: mean speed-up, median rate and median share of the peak, by implementation.

use super::bars::{Bars, Column, Length, Line};
use super::figures::{bytes_per_second, percent, times};
use super::picture::Picture;
use super::rows::{Row, Rows, distinct, grouped, mean, median, nanos, speedup};
use calorimeter_case::{Mode, Suite};

pub(super) fn picture(rows: &Rows<'_>) -> Option<Picture> {
    let is_shown = |row: &Row<'_>| {
        let mode = row.record.case.mode;
        mode.is_operator() && mode != Mode::Operator(Suite::Fusion) && nanos(row.record).is_some()
    };
    let shown: Vec<Row> = rows.measured.iter().copied().filter(is_shown).collect();
    let kernels = distinct(shown.iter().map(|row| row.record.case.implementation));
    let mut columns = Vec::new();
    for kernel in &kernels {
        let heads = [("speed-up", Length::Ratio), ("bytes/s", Length::None), ("of the peak", Length::Amount)];
        columns.extend(heads.map(|(head, length)| Column { head: format!("{kernel} {head}"), length }));
    }
    let lines: Vec<Line> = grouped(shown.into_iter(), |row| row.record.case.workload)
        .into_iter()
        .map(|(name, group)| {
            let of_kernel = |kernel| {
                let own = || {
                    let own = group.iter().filter(move |row| row.record.case.implementation == kernel);
                    own.map(|row| row.record)
                };
                let gbps = median(own().filter_map(|record| record.rates.gbps).filter(|rate| *rate > 0.0));
                let share = median(own().filter_map(|record| Some(record.rates.roofline.as_ref()?.percent)));
                [
                    mean(own().filter_map(speedup)).map(|ratio| (ratio, times(ratio))),
                    gbps.map(|rate| (rate, bytes_per_second(rate * 1e9))),
                    share.map(|share| (share, percent(share))),
                ]
            };
            Line { name: name.to_string(), figures: kernels.iter().flat_map(|kernel| of_kernel(*kernel)).collect() }
        })
        .collect();
    let title = "Operators: mean speed-up over eager, median rate and share of the peak".into();
    (!lines.is_empty()).then(|| Picture::Bars(Bars { title, columns, lines }.without_empty()))
}
