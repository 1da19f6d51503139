//! Values of records that only figures show, and readers of columns by name.

use std::sync::LazyLock;

use calorimeter_case::{Implementation, Mode, variant};

use crate::columns::{COLUMNS, Cell, RecordColumn, lift_columns};
use crate::record::{CellReader, Column, FusionState, Record};

/// Columns of figures.
pub(super) static DERIVED: LazyLock<Vec<RecordColumn>> =
    LazyLock::new(|| lift_columns(&COLUMNS_OF_RECORDS, |record| Some(record)));

static COLUMNS_OF_RECORDS: [Column<Record>; 10] = [
    column("variant", CellReader::Written(|record| Some(recipe(record)))),
    column("item", CellReader::Written(|record| Some(item(record)))),
    column("series", CellReader::Written(|record| Some(item_and_implementation(record)))),
    column("model", CellReader::Text(|record| Some(split_pass(record).0))),
    column(
        "pass",
        CellReader::Text(|record| Some(split_pass(record).1.map_or("pass", |pass| &PASS_SUFFIXES[pass][1..]))),
    ),
    column("fusion", CellReader::Text(|record| Some(fusion_state(record)))),
    column(
        "measured_launches",
        CellReader::Number(|record| record.execution.kernel_launches.filter(|_| record.is_ok())),
    ),
    column(
        "weight_saving",
        CellReader::Number(|record| ratio(record.weights.baseline_weight_bytes?, record.weights.weight_bytes?)),
    ),
    column(
        "fusion_bound",
        CellReader::Number(|record| {
            let model = record.case.fusion.as_ref()?;
            ratio(model.unfused_bytes, model.fused_bytes)
        }),
    ),
    column("intensity", CellReader::Number(|record| ratio(record.case.flops?, record.case.bytes?))),
];

const fn column(name: &'static str, read: CellReader<Record>) -> Column<Record> {
    Column { name, field: "", unit: "", doc: "", read }
}

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

/// Columns with the work of a pass, with their labels.
pub(super) const WORK: [(&str, &str); 2] = [("flops", "operations per pass"), ("bytes", "bytes per pass")];

/// Label of a column; an axis is its own label.
pub(super) fn label(name: &str) -> &str {
    let mut labels = FILTERS.iter().chain(&PROPERTIES).chain(&WORK);
    labels.find(|(known, _)| *known == name).map_or(name, |(_, label)| label)
}

fn ratio(dividend: u64, divisor: u64) -> Option<f64> {
    (dividend > 0 && divisor > 0).then(|| dividend as f64 / divisor as f64)
}

/// Cell of a column or axis.
fn cell<'a>(name: &str, record: &'a Record) -> Option<Cell<'a>> {
    match DERIVED.iter().chain(COLUMNS.iter()).find(|column| column.name == name) {
        Some(column) => column.cell(record),
        None => record.case.shape.get(name).map(Cell::Count),
    }
}

/// Text of a column or axis.
pub(super) fn text(name: &str, record: &Record) -> Option<String> {
    match cell(name, record)? {
        Cell::Text(text) => Some(text.into_owned()),
        Cell::Count(count) => Some(count.to_string()),
        Cell::Number(_) | Cell::Flag(_) => None,
    }
}

/// Number in a column or axis.
pub(super) fn number(name: &str, record: &Record) -> Option<f64> {
    match cell(name, record)? {
        Cell::Number(number) => Some(number),
        Cell::Count(count) => Some(count as f64),
        Cell::Text(_) | Cell::Flag(_) => None,
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

/// State of a fusion pattern: result of an accepted measurement, or status.
fn fusion_state(record: &Record) -> &'static str {
    match record.execution.fusion_state {
        _ if !record.is_ok() => record.outcome.status.as_str(),
        Some(state) => FusionState::as_str(state),
        None if record.case.implementation == Implementation::Eager => "one kernel per operator",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, Status};

    #[test]
    fn rejected_records_have_no_fusion_result() {
        let mut record = Record::new(Case::default(), Status::Mismatch);
        record.execution.fusion_state = Some(FusionState::Fused);
        record.execution.kernel_launches = Some(1.0);
        assert_eq!(text("fusion", &record).as_deref(), Some("mismatch"));
        assert_eq!(number("measured_launches", &record), None);
    }
}
