//! Fusion: kernels per pass, speed-up, and its upper bound from bytes.

use calorimeter_case::{FusionModel, Mode, Suite};

use super::bars::{Bars, Column, Length, Line};
use super::figures::{bytes, digits, times};
use super::picture::Picture;
use super::rows::{Rows, grouped, mean, median, speedup};
use crate::record::{FusionState, Record};

pub(super) fn picture(rows: &Rows<'_>) -> Option<Picture> {
    let patterns = rows
        .with(|record| record.execution.fusion_state.is_some() || record.case.mode == Mode::Operator(Suite::Fusion));
    let lines: Vec<Line> = grouped(patterns.into_iter(), |row| row.who())
        .into_iter()
        .map(|(name, group)| {
            let records = || group.iter().map(|row| row.record);
            let told: Vec<FusionState> = records().filter_map(|record| record.execution.fusion_state).collect();
            let fused = told.iter().filter(|state| **state == FusionState::Fused).count();
            let launches = median(records().filter_map(|record| record.execution.kernel_launches));
            let ratio = |ratio: Option<f64>| ratio.map(|ratio| (ratio, times(ratio)));
            let model = |figure: fn(&FusionModel) -> u64| {
                let figures = records().filter_map(|record| Some(figure(record.case.fusion.as_ref()?) as f64));
                median(figures).map(|moved| (moved, bytes(moved)))
            };
            let figures = vec![
                (!told.is_empty()).then(|| (fused as f64, format!("{fused} of {}", told.len()))),
                launches.map(|launches| (launches, digits(launches, 3))),
                ratio(mean(records().filter_map(speedup))),
                model(|model| model.unfused_bytes),
                model(|model| model.fused_bytes),
                ratio(mean(records().filter_map(allowed))),
            ];
            Line { name, figures }
        })
        .collect();
    let heads = [
        ("fused", Length::None),
        ("kernels per pass", Length::Amount),
        ("speed-up", Length::Ratio),
        ("bytes unfused", Length::None),
        ("bytes fused", Length::None),
        ("bound from bytes", Length::Ratio),
    ];
    let columns = heads.map(|(head, length)| Column { head: head.into(), length }).into();
    (!lines.is_empty()).then(|| Picture::Bars(Bars { title: "Fusion".into(), columns, lines }.without_empty()))
}

/// Upper bound of the speed-up by fusion, from bytes alone.
fn allowed(record: &Record) -> Option<f64> {
    let model = record.case.fusion.as_ref()?;
    (model.fused_bytes > 0).then(|| model.unfused_bytes as f64 / model.fused_bytes as f64)
}
