//! CSV of torchao's micro-benchmarks, with identical columns and quoting, so that existing scripts continue to work.
//!
//! See [`to_csv`] for the content of the columns.

use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDateTime, TimeZone};

use crate::journal::JOURNAL_FILE;
use crate::pivot::{self, PivotRow};
use crate::python::format_float;
use crate::sink::{Sink, SinkInput};
use crate::spreadsheet::escape_formula;
use crate::{SinkError, atomic};
use calorimeter_case::record::Record;
use calorimeter_case::{Dtype, Element, Mode};

/// Columns of torchao's last schema, in its spelling.
pub const COLUMNS: [&str; 24] = [
    "name",
    "quantization",
    "sparsity",
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
    "baseline_model_eager_inference_time_in_ms",
    "quantized_model_eager_inference_time_in_ms",
    "baseline_model_compiled_inference_time_in_ms",
    "quantized_model_compiled_inference_time_in_ms",
    "eager speedup on baseline",
    "compile speedup on baseline",
    "eager vs compile speedup",
    "profiler_json_path",
    "memory_profile_path",
    "memory_visualization_path",
    "memory_stats",
];

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
    // Line ending of Python's csv.writer on every system.
    let mut writer = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(file);
    writer.write_record(COLUMNS)?;
    for row in rows {
        writer.write_record(cells(row, base, dir))?;
    }
    Ok(writer.flush()?)
}

fn cells(row: &PivotRow, base: &Path, dir: &Path) -> [String; 24] {
    let case = row.case;
    let number = |value: Option<f64>| value.map(format_float).unwrap_or_default();
    [
        row_name(row),
        case.recipe.to_string(),
        case.sparsity.map_or_else(String::new, |sparsity| sparsity.to_string()),
        row.m.to_string(),
        row.k.to_string(),
        row.n.to_string(),
        torch_dtype(case.element),
        case.compile_mode.clone().unwrap_or_default(),
        case.device.kind().to_string(),
        case.workload.to_string(),
        base.join(case.mode.name()).display().to_string(),
        python_bool(case.profiler),
        python_bool(case.memory_profiler),
        number(row.baseline_eager.milliseconds()),
        number(row.eager.milliseconds()),
        number(row.baseline_compiled.milliseconds()),
        number(row.compiled.milliseconds()),
        number(row.eager.speedup_over(row.baseline_eager)),
        number(row.compiled.speedup_over(row.baseline_compiled)),
        number(row.compiled.speedup_over(row.eager)),
        arm_path(row, dir, |record| record.profile.trace.clone()),
        arm_path(row, dir, |record| Some(format!("{}/snapshot_after.json", record.footprint.memory_profile.as_ref()?))),
        arm_path(row, dir, |record| Some(format!("{}/memory.html", record.footprint.memory_profile.as_ref()?))),
        memory_stats(row),
    ]
}

/// Given name, or the one that torchao generates.
fn row_name(row: &PivotRow) -> String {
    let PivotRow { case, m, k, n, .. } = row;
    match case.name.as_str() {
        "" => format!("benchmark_{}_{}_m{m}_k{k}_n{n}_compile", case.recipe, case.workload),
        name => escape_formula(name.into()).into_owned(),
    }
}

/// Path of a file of the compiled arm, else of the eager one.
fn arm_path(row: &PivotRow, dir: &Path, of: impl Fn(&Record) -> Option<String>) -> String {
    let file = row.compiled.0.and_then(&of).or_else(|| row.eager.0.and_then(&of));
    file.map(|file| dir.join(file).display().to_string()).unwrap_or_default()
}

/// Python dictionary with the key under which torch reports the peak.
fn memory_stats(row: &PivotRow) -> String {
    let peak = |record: Option<&Record>| record.and_then(|record| record.footprint.peak_bytes);
    match peak(row.compiled.0).or(peak(row.eager.0)) {
        Some(bytes) => format!("{{'allocated_bytes.all.peak': {}}}", format_float(bytes as f64 / 1e6)),
        None => String::new(),
    }
}

pub(super) fn torch_dtype(element: Element) -> String {
    match element {
        Element::Float(Dtype::Bf16) => "torch.bfloat16".into(),
        Element::Float(Dtype::F16) => "torch.float16".into(),
        Element::Float(Dtype::F32) => "torch.float32".into(),
        other => format!("torch.{other}"),
    }
}

pub(super) fn python_bool(value: bool) -> String {
    if value { "True" } else { "False" }.to_owned()
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
