//! Training results, with the columns of torchao's unmerged training mode followed by our own: a row for each recipe,
//! shape and implementation with all passes.
//!
//! `total_time_ms` is the time of forward and backward pass, measured together. The `reference_…` columns belong to the
//! recipe `baseline` in an equal implementation; `speedup` is the quotient of the totals. Percentages are relative to
//! the measured peaks of the machine.

use super::torchao::{python_bool, results_path, torch_dtype};
use crate::python::format_float;
use crate::sink::{Sink, SinkInput};
use crate::spreadsheet::escape_formula;
use crate::{SinkError, atomic};
use calorimeter_case::record::{Record, Status};
use calorimeter_case::{Case, Mode, Name};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Columns, in order.
const COLUMNS: [&str; 27] = [
    "name",
    "quantization",
    "m",
    "k",
    "n",
    "high_precision_dtype",
    "torch_compile_mode",
    "device",
    "model_type",
    "output_dir",
    "enable_profiler",
    "enable_memory_profiler",
    "forward_time_ms",
    "backward_time_ms",
    "total_time_ms",
    "reference_forward_time_ms",
    "reference_backward_time_ms",
    "reference_total_time_ms",
    "speedup",
    "scaling_repr",
    "ref_tops_sec",
    "ref_pct_top_peak",
    "tops_sec",
    "pct_top_peak",
    "implementation",
    "step_time_ms",
    "tokens_per_sec",
];

/// Writes `<output_dir>/training/results_<start>.csv`, unless no training pass was timed.
pub struct Training;

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
#[derive(Clone)]
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

    /// Identity of the row except for the recipe.
    fn identity(&self) -> String {
        row_identity(self.case, self.model)
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
    let mut writer = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for row in rows.iter().filter(|row| !row.case.implied) {
        let baseline = place_of.get(&(row.identity(), Case::BASELINE)).map(|&at| &rows[at]);
        writer.write_record(cells(row, baseline, output_dir))?;
    }
    writer.into_inner().map_err(|failed| failed.into_error().into())
}

fn cells(row: &TrainingRow, baseline: Option<&TrainingRow>, output_dir: &Path) -> [String; 27] {
    let case = row.case;
    let number = |value: Option<f64>| value.map(format_float).unwrap_or_default();
    let axis = |name: &str| case.shape.get(name).map_or_else(String::new, |size| size.to_string());
    let total = |row: &TrainingRow| row.milliseconds(TrainingPass::Total);
    let rate = |row: &TrainingRow| row.record(TrainingPass::Total).and_then(|record| record.rates.tflops);
    let percent = |row: &TrainingRow| {
        let roofline = row.record(TrainingPass::Total)?.rates.roofline.as_ref()?;
        roofline.compute_percent.or(Some(roofline.percent))
    };
    let before = |pass: TrainingPass| baseline.and_then(|row| row.milliseconds(pass));
    let speedup = baseline.and_then(total).zip(total(row)).map(|(before, now)| before / now);
    [
        escape_formula((&case.name).into()).into_owned(),
        case.recipe.to_string(),
        axis("m"),
        axis("k"),
        axis("n"),
        torch_dtype(case.element),
        case.compile_mode.clone().unwrap_or_default(),
        case.device.kind().to_string(),
        row.model.to_owned(),
        output_dir.join(case.mode.name()).display().to_string(),
        python_bool(case.profiler),
        python_bool(case.memory_profiler),
        number(row.milliseconds(TrainingPass::Forward)),
        number(row.milliseconds(TrainingPass::Backward)),
        number(total(row)),
        number(before(TrainingPass::Forward)),
        number(before(TrainingPass::Backward)),
        number(before(TrainingPass::Total)),
        number(speedup),
        case.scaling.map_or_else(String::new, |scaling| scaling.to_string()),
        number(baseline.and_then(rate)),
        number(baseline.and_then(percent)),
        number(rate(row)),
        number(percent(row)),
        case.implementation.to_string(),
        number(row.milliseconds(TrainingPass::Step)),
        number(row.milliseconds(TrainingPass::Step).zip(case.tokens).map(|(step, tokens)| 1e3 * tokens as f64 / step)),
    ]
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
