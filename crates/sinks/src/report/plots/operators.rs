//! Operators: mean speed-up, median rate and median share of the peak, by implementation.

use super::bars::{BarColumn, BarLength, BarRow, BarTable};
use super::number_format::{bytes_per_second, format_ratio, percent};
use super::picture::Picture;
use super::report_rows::{ReportRow, ReportRows, distinct, geometric_mean, group_by, median, nanos, speedup};
use calorimeter_case::{Mode, Suite};

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let is_shown = |row: &ReportRow<'_>| {
        let mode = row.record.case.mode;
        mode.is_operator() && mode != Mode::Operator(Suite::Fusion) && nanos(row.record).is_some()
    };
    let shown: Vec<ReportRow> = rows.measured.iter().copied().filter(is_shown).collect();
    let kernels = distinct(shown.iter().map(|row| row.record.case.implementation));
    let mut columns = Vec::new();
    for kernel in &kernels {
        let heads = [("speed-up", BarLength::Ratio), ("bytes/s", BarLength::None), ("of the peak", BarLength::Amount)];
        columns.extend(heads.map(|(head, length)| BarColumn { header: format!("{kernel} {head}"), length }));
    }
    let lines: Vec<BarRow> = group_by(shown.into_iter(), |row| row.record.case.workload)
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
                    geometric_mean(own().filter_map(speedup)).map(|ratio| (ratio, format_ratio(ratio))),
                    gbps.map(|rate| (rate, bytes_per_second(rate * 1e9))),
                    share.map(|share| (share, percent(share))),
                ]
            };
            BarRow { name: name.to_string(), values: kernels.iter().flat_map(|kernel| of_kernel(*kernel)).collect() }
        })
        .collect();
    let title = "Operators: mean speed-up over eager, median rate and share of the peak".into();
    (!lines.is_empty()).then(|| Picture::Bars(BarTable { title, columns, rows: lines }.without_empty_columns()))
}
