//! CSV of torchao's micro-benchmarks, with identical columns and quoting, so that existing scripts continue to work.
//!
//! See [`to_csv`] for the content of the columns.

use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDateTime, TimeZone};

use crate::columns::Cell;
use crate::journal::JOURNAL_FILE;
use crate::pivot::{self, PivotArm, PivotRow};
use crate::python::{PythonColumn, format_float, text, write_csv};
use crate::sink::{Sink, SinkInput};
use crate::{SinkError, atomic};
use calorimeter_case::record::Record;
use calorimeter_case::{Dtype, Element, Mode};

/// Columns of torchao's last schema, in its spelling.
fn columns<'a>() -> [PythonColumn<TorchaoRow<'a>>; 24] {
    [
        ("name", |row| text(row_name(row.pivot))),
        ("quantization", |row| text(row.pivot.case.recipe)),
        ("sparsity", |row| row.pivot.case.sparsity.and_then(text)),
        ("m", |row| Some(Cell::Count(row.pivot.m))),
        ("k", |row| Some(Cell::Count(row.pivot.k))),
        ("n", |row| Some(Cell::Count(row.pivot.n))),
        ("high_precision_dtype", |row| text(torch_dtype(row.pivot.case.element))),
        ("torch_compile_mode", |row| row.pivot.case.compile_mode.as_ref().and_then(text)),
        ("device", |row| text(row.pivot.case.device.kind())),
        ("model_type", |row| text(row.pivot.case.workload)),
        ("output_dir", |row| text(row.base.join(row.pivot.case.mode.name()).display())),
        ("enable_profiler", |row| Some(Cell::Flag(row.pivot.case.profiler))),
        ("enable_memory_profiler", |row| Some(Cell::Flag(row.pivot.case.memory_profiler))),
        ("baseline_model_eager_inference_time_in_ms", |row| milliseconds(row.pivot.baseline_eager)),
        ("quantized_model_eager_inference_time_in_ms", |row| milliseconds(row.pivot.eager)),
        ("baseline_model_compiled_inference_time_in_ms", |row| milliseconds(row.pivot.baseline_compiled)),
        ("quantized_model_compiled_inference_time_in_ms", |row| milliseconds(row.pivot.compiled)),
        ("eager speedup on baseline", |row| speedup(row.pivot.eager, row.pivot.baseline_eager)),
        ("compile speedup on baseline", |row| speedup(row.pivot.compiled, row.pivot.baseline_compiled)),
        ("eager vs compile speedup", |row| speedup(row.pivot.compiled, row.pivot.eager)),
        ("profiler_json_path", |row| row.arm_path(|record| record.profile.trace.clone())),
        ("memory_profile_path", |row| row.memory_file("snapshot_after.json")),
        ("memory_visualization_path", |row| row.memory_file("memory.html")),
        ("memory_stats", |row| memory_stats(row.pivot)),
    ]
}

/// Row of the table with the directories that its paths are based on.
struct TorchaoRow<'a> {
    pivot: &'a PivotRow<'a>,
    base: &'a Path,
    dir: &'a Path,
}

/// Writes `<output_dir>/inference/results_<start>.csv`, unless nothing was timed. Runs that started in the same second
/// get the numeric suffix of their directory.
pub struct Torchao;

impl Sink for Torchao {
    fn name(&self) -> &'static str {
        "torchao"
    }

    fn write(&self, run: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
        let rows = pivot::pivot_rows(&run.records);
        // Training has other columns, and torchao has no operators.
        let rows = || rows.iter().filter(|row| row.case.mode == Mode::Inference);
        if rows().next().is_none() || run.records.iter().all(|record| record.time.time_ns.is_none()) {
            return Ok(Vec::new());
        }
        let path = results_path(run, Mode::Inference)?;
        atomic::write_with(&path, |file| {
            encode(rows(), &run.output_dir, &run.dir, file).map_err(|cause| SinkError::format(&path, cause))
        })?;
        Ok(vec![path])
    }
}

/// Path of the results of a run in a mode.
pub(super) fn results_path(run: &SinkInput, mode: Mode) -> Result<PathBuf, SinkError> {
    let started = DateTime::parse_from_rfc3339(&run.header.started).map_err(|cause| SinkError::BadTime {
        journal: run.dir.join(JOURNAL_FILE),
        started: run.header.started.clone(),
        cause,
    })?;
    let stamp = run_stamp(&run.header.run_id).unwrap_or_else(|| time_stamp(started.naive_local()));
    Ok(path_of(&run.output_dir, mode, &stamp))
}

/// Path used by torchao for a start time: `<base>/<mode>/results_%d%m%Y_%H%M%S.csv`.
pub fn file_path<Tz: TimeZone>(base: &Path, mode: Mode, started: &DateTime<Tz>) -> PathBuf {
    path_of(base, mode, &time_stamp(started.naive_local()))
}

fn path_of(base: &Path, mode: Mode, stamp: &str) -> PathBuf {
    base.join(mode.name()).join(format!("results_{stamp}.csv"))
}

fn time_stamp(started: NaiveDateTime) -> String {
    started.format("%d%m%Y_%H%M%S").to_string()
}

/// Time stamp from a run id, if the id is the name of a generated directory, which is unique in the results directory.
fn run_stamp(run_id: &str) -> Option<String> {
    let (started, number) = NaiveDateTime::parse_and_remainder(run_id, "%Y%m%d-%H%M%S").ok()?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let known = number.is_empty() || number.strip_prefix('-').is_some_and(is_number);
    known.then(|| time_stamp(started) + number)
}

/// Formats records as that CSV: a row for each recipe and shape that the user listed, without implied baselines.
///
/// Times are medians in milliseconds. Regimes are not mixed; each gives its own row. The eager columns hold the
/// implementation `eager`, the compiled columns the fastest other implementation, and the baseline columns likewise for
/// the recipe `baseline`. Speed-ups are quotients of these cells, rounded to two decimals: baseline by quantized
/// (eager), baseline by quantized (compiled), eager by compiled (quantized). `memory_stats` holds the peak of the
/// compiled arm, else of the eager one, in 10⁶ bytes. Unmeasured cells are empty; rows without any measurement are
/// included.
pub fn to_csv(records: &[Record], base: &Path) -> Result<Vec<u8>, SinkError> {
    let mut text = Vec::new();
    encode(pivot::pivot_rows(records).iter(), base, base, &mut text).map_err(|cause| SinkError::format(base, cause))?;
    Ok(text)
}

fn encode<'a>(
    rows: impl Iterator<Item = &'a PivotRow<'a>>,
    base: &Path,
    dir: &Path,
    file: impl Write,
) -> Result<(), ::csv::Error> {
    write_csv(&columns(), rows.map(|pivot| TorchaoRow { pivot, base, dir }), file)
}

fn milliseconds(arm: PivotArm<'_>) -> Option<Cell<'static>> {
    arm.milliseconds().map(Cell::Number)
}

fn speedup(arm: PivotArm<'_>, other: PivotArm<'_>) -> Option<Cell<'static>> {
    arm.speedup_over(other).map(Cell::Number)
}

/// Given name, or the one that torchao generates. In a file with rows of PyTorch, other rows have a suffix.
fn row_name(row: &PivotRow) -> String {
    let PivotRow { case, m, k, n, .. } = row;
    let name = match case.name.as_str() {
        "" => format!("benchmark_{}_{}_m{m}_k{k}_n{n}_compile", case.recipe, case.workload),
        name => name.to_owned(),
    };
    if row.needs_suffix { format!("{name}_{}", row.family.name()) } else { name }
}

impl TorchaoRow<'_> {
    /// Path of a file of the compiled arm, else of the eager one.
    fn arm_path(&self, of: impl Fn(&Record) -> Option<String>) -> Option<Cell<'static>> {
        let file = self.pivot.compiled.0.and_then(&of).or_else(|| self.pivot.eager.0.and_then(&of));
        text(self.dir.join(file?).display())
    }

    fn memory_file(&self, name: &str) -> Option<Cell<'static>> {
        self.arm_path(|record| Some(format!("{}/{name}", record.footprint.memory_profile.as_ref()?)))
    }
}

/// Python dictionary with the key under which torch reports the peak.
fn memory_stats(row: &PivotRow) -> Option<Cell<'static>> {
    let peak = |arm: PivotArm<'_>| arm.0.and_then(|record| record.footprint.peak_bytes);
    let bytes = peak(row.compiled).or(peak(row.eager))?;
    text(format!("{{'allocated_bytes.all.peak': {}}}", format_float(bytes as f64 / 1e6)))
}

pub(super) fn torch_dtype(element: Element) -> String {
    match element {
        Element::Float(Dtype::Bf16) => "torch.bfloat16".into(),
        Element::Float(Dtype::F16) => "torch.float16".into(),
        Element::Float(Dtype::F32) => "torch.float32".into(),
        other => format!("torch.{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::FixedOffset;

    #[test]
    fn file_name_has_the_local_start_time() {
        let zone = FixedOffset::east_opt(2 * 3600).unwrap();
        let started = zone.with_ymd_and_hms(2026, 3, 9, 7, 5, 1).unwrap();
        let path = file_path(Path::new("results"), Mode::Inference, &started);
        assert_eq!(path, Path::new("results/inference/results_09032026_070501.csv"));
    }

    #[test]
    fn runs_of_one_second_have_distinct_names() {
        for (run_id, expected) in [
            ("20260309-070501", Some("09032026_070501")),
            ("20260309-070501-2", Some("09032026_070501-2")),
            ("20260309-070501-12", Some("09032026_070501-12")),
            ("20260309-070501-../2", None),
            ("20260309-0705012", None),
            ("20260309-070501-", None),
            ("sorting", None),
        ] {
            assert_eq!(run_stamp(run_id).as_deref(), expected, "{run_id}");
        }
    }
}
