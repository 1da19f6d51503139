//! Fusion: kernels per pass, speed-up, and its upper bound from bytes.

use calorimeter_case::{FusionModel, Mode, Suite};

use super::bars::{BarColumn, BarLength, BarRow, BarTable};
use super::number_format::{bytes, digits, format_ratio};
use super::picture::Picture;
use super::report_rows::{ReportRows, geometric_mean, group_by, median, speedup};
use crate::record::{FusionState, Record};

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let patterns = rows.filtered(|record| {
        record.execution.fusion_state.is_some() || record.case.mode == Mode::Operator(Suite::Fusion)
    });
    let lines: Vec<BarRow> = group_by(patterns.into_iter(), |row| row.item_and_implementation())
        .into_iter()
        .map(|(name, group)| {
            let records = || group.iter().map(|row| row.record);
            let told: Vec<FusionState> = records().filter_map(|record| record.execution.fusion_state).collect();
            let fused = told.iter().filter(|state| **state == FusionState::Fused).count();
            let launches = median(records().filter_map(|record| record.execution.kernel_launches));
            let ratio = |ratio: Option<f64>| ratio.map(|ratio| (ratio, format_ratio(ratio)));
            let model = |figure: fn(&FusionModel) -> u64| {
                let figures = records().filter_map(|record| Some(figure(record.case.fusion.as_ref()?) as f64));
                median(figures).map(|moved| (moved, bytes(moved)))
            };
            let figures = vec![
                (!told.is_empty()).then(|| (fused as f64, format!("{fused} of {}", told.len()))),
                launches.map(|launches| (launches, digits(launches, 3))),
                ratio(geometric_mean(records().filter_map(speedup))),
                model(|model| model.unfused_bytes),
                model(|model| model.fused_bytes),
                ratio(geometric_mean(records().filter_map(speedup_bound))),
            ];
            BarRow { name, values: figures }
        })
        .collect();
    let heads = [
        ("fused", BarLength::None),
        ("kernels per pass", BarLength::Amount),
        ("speed-up", BarLength::Ratio),
        ("bytes unfused", BarLength::None),
        ("bytes fused", BarLength::None),
        ("bound from bytes", BarLength::Ratio),
    ];
    let columns = heads.map(|(head, length)| BarColumn { header: head.into(), length }).into();
    (!lines.is_empty())
        .then(|| Picture::Bars(BarTable { title: "Fusion".into(), columns, rows: lines }.without_empty_columns()))
}

/// Upper bound of the speed-up by fusion, from bytes alone.
fn speedup_bound(record: &Record) -> Option<f64> {
    let model = record.case.fusion.as_ref()?;
    (model.fused_bytes > 0).then(|| model.unfused_bytes as f64 / model.fused_bytes as f64)
}
