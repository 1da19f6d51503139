//! Savings of weight bytes and peak memory.

use super::bars::{BarColumn, BarLength, BarRow, BarTable};
use super::number_format::{bytes, format_ratio};
use super::picture::Picture;
use super::report_rows::{ReportRows, geometric_mean, group_by, is_model};
use crate::record::Record;

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let known = rows.filtered(|record| {
        let peak = is_model(record) && record.footprint.peak_bytes.is_some();
        weight_saving(record).is_some() || memory_saving(record).is_some() || peak
    });
    let lines: Vec<BarRow> = group_by(known.into_iter(), |row| row.item_and_implementation())
        .into_iter()
        .map(|(name, group)| {
            let records = || group.iter().map(|row| row.record);
            let ratio = |ratios: Option<f64>| ratios.map(|ratio| (ratio, format_ratio(ratio)));
            let most = |figure: fn(&Record) -> Option<u64>| {
                records().filter_map(figure).max().map(|most| (most as f64, bytes(most as f64)))
            };
            let figures = vec![
                ratio(geometric_mean(records().filter_map(weight_saving))),
                most(|record| record.weights.weight_bytes),
                ratio(geometric_mean(records().filter_map(memory_saving))),
                most(|record| record.footprint.peak_bytes),
            ];
            BarRow { name, values: figures }
        })
        .collect();
    let heads = [
        ("weight saving", BarLength::Ratio),
        ("largest weights", BarLength::None),
        ("peak saving", BarLength::Ratio),
        ("largest peak", BarLength::Amount),
    ];
    let columns = heads.map(|(head, length)| BarColumn { header: head.into(), length }).into();
    let title = "Memory: savings relative to the baseline".into();
    (!lines.is_empty()).then(|| Picture::Bars(BarTable { title, columns, rows: lines }.without_empty_columns()))
}

fn weight_saving(record: &Record) -> Option<f64> {
    let (own, baseline) = (record.weights.weight_bytes?, record.weights.baseline_weight_bytes?);
    (own > 0 && baseline > 0).then(|| baseline as f64 / own as f64)
}

fn memory_saving(record: &Record) -> Option<f64> {
    record.footprint.memory.as_ref()?.saving.filter(|saving| *saving > 0.0)
}
