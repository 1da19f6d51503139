//! Savings of weight bytes and peak memory.

use super::bars::{Bars, Column, Length, Line};
use super::figures::{bytes, times};
use super::picture::Picture;
use super::rows::{Rows, grouped, is_model, mean};
use crate::record::Record;

pub(super) fn picture(rows: &Rows<'_>) -> Option<Picture> {
    let known = rows.with(|record| {
        let peak = is_model(record) && record.footprint.peak_bytes.is_some();
        smaller(record).is_some() || saving(record).is_some() || peak
    });
    let lines: Vec<Line> = grouped(known.into_iter(), |row| row.who())
        .into_iter()
        .map(|(name, group)| {
            let records = || group.iter().map(|row| row.record);
            let ratio = |ratios: Option<f64>| ratios.map(|ratio| (ratio, times(ratio)));
            let most = |figure: fn(&Record) -> Option<u64>| {
                records().filter_map(figure).max().map(|most| (most as f64, bytes(most as f64)))
            };
            let figures = vec![
                ratio(mean(records().filter_map(smaller))),
                most(|record| record.weights.weight_bytes),
                ratio(mean(records().filter_map(saving))),
                most(|record| record.footprint.peak_bytes),
            ];
            Line { name, figures }
        })
        .collect();
    let heads = [
        ("weight saving", Length::Ratio),
        ("largest weights", Length::None),
        ("peak saving", Length::Ratio),
        ("largest peak", Length::Amount),
    ];
    let columns = heads.map(|(head, length)| Column { head: head.into(), length }).into();
    let title = "Memory: savings relative to the baseline".into();
    (!lines.is_empty()).then(|| Picture::Bars(Bars { title, columns, lines }.without_empty()))
}

fn smaller(record: &Record) -> Option<f64> {
    let (own, baseline) = (record.weights.weight_bytes?, record.weights.baseline_weight_bytes?);
    (own > 0 && baseline > 0).then(|| baseline as f64 / own as f64)
}

fn saving(record: &Record) -> Option<f64> {
    record.footprint.memory.as_ref()?.saving.filter(|saving| *saving > 0.0)
}
