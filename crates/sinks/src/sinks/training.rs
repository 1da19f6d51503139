//! Training results, with the columns of torchao's unmerged training mode followed by our own: a row for each recipe,
//! shape and implementation with all passes.
//!
//! `total_time_ms` is the time of forward and backward pass, measured together. The `reference_…` columns belong to the
//! recipe `baseline` in an equal implementation; `speedup` is the quotient of the totals. Percentages are relative to
//! the measured peaks of the machine.

use super::torchao::{results_path, torch_dtype};
use crate::columns::Cell;
use crate::python::{PythonColumn, text, write_csv};
use crate::sink::{Sink, SinkInput};
use crate::{SinkError, atomic};
use calorimeter_case::record::{Record, Status};
use calorimeter_case::{Case, Mode, Name};
use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Columns, in order.
fn columns<'a>() -> [PythonColumn<ComparedRow<'a>>; 27] {
    [
        ("name", |row| text(&row.case.name)),
        ("quantization", |row| text(row.case.recipe)),
        ("m", |row| row.case.shape.get("m").map(Cell::Count)),
        ("k", |row| row.case.shape.get("k").map(Cell::Count)),
        ("n", |row| row.case.shape.get("n").map(Cell::Count)),
        ("high_precision_dtype", |row| text(torch_dtype(row.case.element))),
        ("torch_compile_mode", |row| row.case.compile_mode.as_ref().and_then(text)),
        ("device", |row| text(row.case.device.kind())),
        ("model_type", |row| text(row.model)),
        ("output_dir", |row| text(row.output_dir.join(row.case.mode.name()).display())),
        ("enable_profiler", |row| Some(Cell::Flag(row.case.profiler))),
        ("enable_memory_profiler", |row| Some(Cell::Flag(row.case.memory_profiler))),
        ("forward_time_ms", |row| row.milliseconds(TrainingPass::Forward).map(Cell::Number)),
        ("backward_time_ms", |row| row.milliseconds(TrainingPass::Backward).map(Cell::Number)),
        ("total_time_ms", |row| row.milliseconds(TrainingPass::Total).map(Cell::Number)),
        ("reference_forward_time_ms", |row| row.baseline?.milliseconds(TrainingPass::Forward).map(Cell::Number)),
        ("reference_backward_time_ms", |row| row.baseline?.milliseconds(TrainingPass::Backward).map(Cell::Number)),
        ("reference_total_time_ms", |row| row.baseline?.milliseconds(TrainingPass::Total).map(Cell::Number)),
        ("speedup", |row| row.speedup().map(Cell::Number)),
        ("scaling_repr", |row| row.case.scaling.and_then(text)),
        ("ref_tops_sec", |row| row.baseline?.rate().map(Cell::Number)),
        ("ref_pct_top_peak", |row| row.baseline?.percent().map(Cell::Number)),
        ("tops_sec", |row| row.rate().map(Cell::Number)),
        ("pct_top_peak", |row| row.percent().map(Cell::Number)),
        ("implementation", |row| text(row.case.implementation)),
        ("step_time_ms", |row| row.milliseconds(TrainingPass::Step).map(Cell::Number)),
        ("tokens_per_sec", |row| row.tokens_per_second().map(Cell::Number)),
    ]
}

/// Writes `<output_dir>/training/results_<start>.csv`, unless no training pass was timed.
pub(crate) struct Training;

impl Sink for Training {
    fn name(&self) -> &'static str {
        "training"
    }

    fn write(&self, run: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
        let timed = |record: &Record| record.case.mode == Mode::Training && record.time.time_ns.is_some();
        if !run.records.iter().any(timed) {
            return Ok(Vec::new());
        }
        let path = results_path(run, Mode::Training)?;
        let text = to_csv(&run.records, &run.output_dir).map_err(|cause| SinkError::format(&path, cause))?;
        atomic::write(&path, &text)?;
        Ok(vec![path])
    }
}

/// Pass of a training step, from the suffix of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TrainingPass {
    Forward,
    Backward,
    Total,
    Step,
}

/// Suffixes of workloads; a suffix precedes its own suffixes.
const PASSES: [(&str, TrainingPass); 5] = [
    ("_forward_backward", TrainingPass::Total),
    ("_forward", TrainingPass::Forward),
    ("_backward", TrainingPass::Backward),
    ("_adamw_step", TrainingPass::Step),
    ("_sgd_step", TrainingPass::Step),
];

/// Splits the name of a workload into layer and pass.
fn split_workload(workload: &str) -> Option<(&str, TrainingPass)> {
    PASSES.iter().find_map(|(end, pass)| Some((workload.strip_suffix(end)?, *pass)))
}

/// Passes of a recipe, shape and implementation.
struct TrainingRow<'a> {
    case: &'a Case,
    model: &'a str,
    passes: HashMap<TrainingPass, &'a Record>,
}

impl TrainingRow<'_> {
    fn record(&self, pass: TrainingPass) -> Option<&Record> {
        self.passes.get(&pass).copied()
    }

    fn milliseconds(&self, pass: TrainingPass) -> Option<f64> {
        Some(self.record(pass)?.time.time_ns?.median / 1e6)
    }

    fn rate(&self) -> Option<f64> {
        self.record(TrainingPass::Total)?.rates.tflops
    }

    fn percent(&self) -> Option<f64> {
        let roofline = self.record(TrainingPass::Total)?.rates.roofline.as_ref()?;
        roofline.compute_percent.or(Some(roofline.percent))
    }

    fn tokens_per_second(&self) -> Option<f64> {
        Some(1e3 * self.case.tokens? as f64 / self.milliseconds(TrainingPass::Step)?)
    }
}

/// Row of the table with the row of its baseline.
struct ComparedRow<'a> {
    row: &'a TrainingRow<'a>,
    baseline: Option<&'a TrainingRow<'a>>,
    output_dir: &'a Path,
}

impl<'a> Deref for ComparedRow<'a> {
    type Target = TrainingRow<'a>;

    fn deref(&self) -> &TrainingRow<'a> {
        self.row
    }
}

impl ComparedRow<'_> {
    fn speedup(&self) -> Option<f64> {
        Some(self.baseline?.milliseconds(TrainingPass::Total)? / self.milliseconds(TrainingPass::Total)?)
    }
}

fn row_identity(case: &Case, model: &str) -> String {
    let Case { name, implementation, device, element, shape, shape_name, regime, .. } = case;
    format!("{name}\n{model}/{implementation}/{device}/{element}/{shape}/{shape_name}/{regime}")
}

fn to_csv(records: &[Record], output_dir: &Path) -> Result<Vec<u8>, ::csv::Error> {
    let mut rows: Vec<TrainingRow> = Vec::new();
    let mut place_of: HashMap<(String, Name), usize> = HashMap::new();
    for record in records.iter().filter(|record| record.case.mode == Mode::Training) {
        let case = &record.case;
        let Some((model, pass)) = split_workload(case.workload.as_str()) else { continue };
        let place = *place_of.entry((row_identity(case, model), case.recipe)).or_insert_with(|| {
            rows.push(TrainingRow { case, model, passes: HashMap::new() });
            rows.len() - 1
        });
        if record.outcome.status == Status::Ok {
            rows[place].passes.insert(pass, record);
        }
    }
    let compared = rows.iter().filter(|row| !row.case.implied).map(|row| {
        let key = (row_identity(row.case, row.model), Case::BASELINE);
        ComparedRow { row, baseline: place_of.get(&key).map(|&at| &rows[at]), output_dir }
    });
    let mut text = Vec::new();
    write_csv(&columns(), compared, &mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::record::{Estimate, Time};

    #[test]
    fn rows_hold_passes_and_baseline() {
        let record = |recipe: &'static str, workload: &'static str, median: f64, implied: bool| {
            let case = Case {
                mode: Mode::Training,
                workload: workload.into(),
                recipe: recipe.into(),
                shape: [("m", 8), ("k", 16), ("n", 32)].into(),
                tokens: Some(128),
                implied,
                ..Case::default()
            };
            let time_ns = Some(Estimate { median, lo: None, hi: None });
            Record { time: Time { time_ns, ..Time::default() }, ..Record::new(case, Status::Ok) }
        };
        let mut records = vec![
            record("baseline", "linear_forward", 1e6, true),
            record("baseline", "linear_forward_backward", 3e6, true),
            record("rowwise", "linear_forward", 5e5, false),
            record("rowwise", "linear_backward", 1e6, false),
            record("rowwise", "linear_forward_backward", 1.25e6, false),
            record("rowwise", "linear_adamw", 1.0, false),
            record("rowwise", "swiglu_mlp_adamw_step", 4e6, false),
        ];
        records.push(Record::new(record("rowwise", "linear_adamw_step", 1.0, false).case, Status::Failed));
        let text = String::from_utf8(to_csv(&records, Path::new("out")).unwrap()).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 3, "{text}");
        let cell_of = |line: usize, name: &str| lines[line][lines[0].iter().position(|head| *head == name).unwrap()];
        let cell = |name: &str| cell_of(1, name);
        let expected = [
            ("quantization", "rowwise"),
            ("model_type", "linear"),
            ("output_dir", "out/training"),
            ("forward_time_ms", "0.5"),
            ("backward_time_ms", "1.0"),
            ("total_time_ms", "1.25"),
            ("reference_forward_time_ms", "1.0"),
            ("reference_backward_time_ms", ""),
            ("reference_total_time_ms", "3.0"),
            ("speedup", "2.4"),
            ("step_time_ms", ""),
        ];
        for (name, value) in expected {
            assert_eq!(cell(name), value, "{name}");
        }
        // 128 tokens in four milliseconds.
        assert_eq!([cell_of(2, "model_type"), cell_of(2, "tokens_per_sec")], ["swiglu_mlp", "32000.0"]);
    }
}
