//! Values of records that only figures show, and readers of columns by name.

use calorimeter_case::{Implementation, Mode, variant};

use crate::columns::{COLUMNS, Cell};
use crate::record::{FusionState, Record, Status};

/// Text column: name and accessor.
pub(super) type TextColumn = (&'static str, fn(&Record) -> Option<String>);
/// Column of numbers: name and accessor.
pub(super) type NumberColumn = (&'static str, fn(&Record) -> Option<f64>);

/// Text columns of figures.
pub(super) const TEXTS: [TextColumn; 6] = [
    ("variant", |record| Some(recipe(record))),
    ("item", |record| Some(item(record))),
    ("series", |record| Some(item_and_implementation(record))),
    ("model", |record| Some(split_pass(record).0.to_owned())),
    ("pass", |record| Some(split_pass(record).1.map_or("pass", |place| &PASS_SUFFIXES[place][1..]).to_owned())),
    ("fusion", fusion_state),
];

/// Columns of numbers of figures.
pub(super) const NUMBERS: [NumberColumn; 3] = [
    ("weight_saving", |record| ratio(record.weights.baseline_weight_bytes?, record.weights.weight_bytes?)),
    ("fusion_bound", |record| {
        let model = record.case.fusion.as_ref()?;
        ratio(model.unfused_bytes, model.fused_bytes)
    }),
    ("intensity", |record| ratio(record.case.flops?, record.case.bytes?)),
];

/// Columns that the page can filter by, with their labels.
pub(super) const FILTERS: [(&str, &str); 9] = [
    ("run", "run"),
    ("mode", "mode"),
    ("workload", "workload"),
    ("variant", "recipe"),
    ("implementation", "implementation"),
    ("device", "device"),
    ("dtype", "dtype"),
    ("regime", "regime"),
    ("status", "status"),
];

/// Further columns by which cases can be arranged, with their labels.
pub(super) const PROPERTIES: [(&str, &str); 4] = [
    ("series", "recipe and implementation"),
    ("item", "recipe or operator"),
    ("shape_name", "shape set"),
    ("shape", "shape"),
];

/// Label of a column; an axis is its own label.
pub(super) fn label(name: &str) -> &str {
    match name {
        "flops" => "operations per pass",
        "bytes" => "bytes per pass",
        _ => FILTERS.iter().chain(&PROPERTIES).find(|(known, _)| *known == name).map_or(name, |(_, label)| label),
    }
}

fn ratio(dividend: u64, divisor: u64) -> Option<f64> {
    (dividend > 0 && divisor > 0).then(|| dividend as f64 / divisor as f64)
}

/// Text of a column or axis of a record.
pub(super) fn text(name: &str, record: &Record) -> Option<String> {
    if let Some((_, read)) = TEXTS.iter().find(|(known, _)| *known == name) {
        return read(record);
    }
    match COLUMNS.iter().find(|column| column.name == name) {
        Some(column) => match column.cell(record)? {
            Cell::Text(text) => Some(text.into_owned()),
            Cell::Count(count) => Some(count.to_string()),
            Cell::Number(_) | Cell::Flag(_) => None,
        },
        None => Some(record.case.shape.get(name)?.to_string()),
    }
}

/// Number in a column or axis of a record.
pub(super) fn number(name: &str, record: &Record) -> Option<f64> {
    if let Some((_, read)) = NUMBERS.iter().find(|(known, _)| *known == name) {
        return read(record);
    }
    match COLUMNS.iter().find(|column| column.name == name) {
        Some(column) => match column.cell(record)? {
            Cell::Number(number) => Some(number),
            Cell::Count(count) => Some(count as f64),
            Cell::Text(_) | Cell::Flag(_) => None,
        },
        None => Some(record.case.shape.get(name)? as f64),
    }
}

/// Compared item: the recipe of a model, or the name of an operator.
pub(super) fn item(record: &Record) -> String {
    match record.case.mode {
        Mode::Operator(_) => record.case.workload.to_string(),
        Mode::Inference | Mode::Training => recipe(record),
    }
}

/// Compared item and implementation.
pub(super) fn item_and_implementation(record: &Record) -> String {
    format!("{} · {}", item(record), record.case.implementation)
}

/// Recipe with sparsity and scaling.
fn recipe(record: &Record) -> String {
    let recipe = variant(record.case.recipe, record.case.sparsity);
    record.case.scaling.map_or(recipe.clone(), |scaling| format!("{recipe} {scaling}"))
}

/// Suffixes of workload names, in the order of a training step.
const PASS_SUFFIXES: [&str; 7] =
    ["_forward", "_backward", "_forward_backward", "_adamw", "_sgd", "_adamw_step", "_sgd_step"];

/// Model of a training pass, and the index of the pass in [`PASS_SUFFIXES`].
fn split_pass(record: &Record) -> (&str, Option<usize>) {
    let name = record.case.workload.as_str();
    let place = PASS_SUFFIXES.iter().rposition(|end| name.ends_with(end));
    (place.map_or(name, |place| &name[..name.len() - PASS_SUFFIXES[place].len()]), place)
}

/// Sort key of the values of a text column; others stay in order of first occurrence.
pub(super) fn rank(name: &str, record: &Record) -> Option<usize> {
    (name == "pass").then(|| split_pass(record).1).flatten()
}

/// State of a fusion pattern: result of the measurement, or status.
fn fusion_state(record: &Record) -> Option<String> {
    let state = match record.execution.fusion_state {
        Some(state) => FusionState::as_str(state),
        None if record.outcome.status != Status::Ok => record.outcome.status.as_str(),
        None if record.case.implementation == Implementation::Eager => "one kernel per operator",
        None => "unknown",
    };
    Some(state.to_owned())
}
