//! A record as a row of their table: facts of the case, statistics of each metric, and at the end what they do not have.

use super::statistics::{NAMES, Sorted};
use crate::python;
use crate::record::{Case, Record, Status};
use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};

/// A cell with the name of its column.
pub type Column = (String, Cell);

/// What stands in a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Whole(u64),
    Number(f64),
    Text(String),
    /// Not measured.
    Empty,
}

impl Cell {
    /// As Python prints it.
    pub fn text(&self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => python::float(*number),
            Self::Text(text) => text.clone(),
            Self::Empty => String::new(),
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(number) => serializer.serialize_u64(*number),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Empty => serializer.serialize_none(),
        }
    }
}

/// The columns of one record, in their order.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The case and its medians.
    pub metadata: Vec<Column>,
    /// Statistics of each metric.
    pub metrics: Vec<Column>,
    /// Statistics that only newer versions have: behind the others, so that places of columns stay.
    pub newer: Vec<Column>,
    /// What tells rows apart that were one row there.
    pub ours: Vec<Column>,
}

/// A list of measurements under the name of its metric; `None` where it cannot be computed.
struct Metric {
    name: &'static str,
    values: Option<Sorted>,
}

impl Row {
    /// The row of a case that was measured.
    pub fn of(record: &Record) -> Option<Self> {
        let Record { case, status, .. } = record;
        let times = Sorted::new(milliseconds(record)).filter(|_| *status == Status::Ok)?;
        let rate = |amount: Option<f64>| {
            Sorted::new(
                milliseconds(record)
                    .into_iter()
                    .map(|time| amount.map(|amount| amount / (time / 1e3)))
                    .collect::<Option<_>>()?,
            )
        };
        let (flops, bytes) = counts(case);
        let is_product = ["m", "k", "n"].iter().all(|axis| case.shape.get(axis).is_some());
        let mut row = Self { ours: ours(case), ..Self::default() };
        let metrics = if case.workload == "single_device_hbm_copy" {
            row.metadata = axes(case, &[]);
            let gigabytes = bytes.map(|bytes| bytes as f64 / 1e9);
            row.metadata.push(("dtype".into(), width(&case.dtype).map_or(Cell::Empty, Cell::Whole)));
            row.metadata.push(("tensor_size_gbytes".into(), gigabytes.map_or(Cell::Empty, Cell::Number)));
            vec![
                Metric { name: "time_ms", values: Some(times) },
                Metric { name: "bw_gbyte_sec", values: rate(gigabytes) },
            ]
        } else if is_product {
            let tera = flops.map(|flops| flops as f64 / 1e12);
            let peak = record.roofline.as_ref().and_then(|roof| roof.peak_tflops);
            row.metadata = axes(case, &["m", "n", "k"]);
            row.metadata.extend(types(case));
            let metrics = vec![
                Metric { name: "step_time_ms", values: Some(times) },
                // Their spelling. One device is measured, so the total is the same.
                Metric { name: "tflops_per_sec_pre_device", values: rate(tera) },
                Metric { name: "tflops_per_sec", values: rate(tera) },
                Metric { name: "MFU", values: rate(tera.zip(peak).map(|(tera, peak)| tera / peak)) },
            ];
            let names =
                ["StepTime(median,ms)", "Throughput(median,TFLOP/s/device)", "TotalThroughput(median,TFLOP/s)", "MFU"];
            row.metadata.extend(medians(&names, &metrics));
            row.metadata.push(("total_flops".into(), flops.map_or(Cell::Empty, Cell::Whole)));
            row.metadata.extend(types_of_products(case));
            metrics
        } else {
            let giga = bytes.map(|bytes| bytes as f64 / 1e9);
            row.metadata = axes(case, &[]);
            row.metadata.extend(types(case));
            let metrics = vec![
                Metric { name: "step_time_ms", values: Some(times) },
                Metric { name: "Gbytes_per_sec_per_device", values: rate(giga) },
                Metric { name: "Gbytes_per_sec", values: rate(giga) },
            ];
            let names =
                ["StepTime(median,ms)", "Throughput(median,GBytes/s/device)", "TotalThroughput(median,GBytes/s)"];
            row.metadata.extend(medians(&names, &metrics));
            row.metadata.push(("total_bytes".into(), bytes.map_or(Cell::Empty, Cell::Whole)));
            metrics
        };
        if case.export.as_ref().is_some_and(|export| export.metrics_dir.is_some()) {
            row.metadata.extend(test(record));
        }
        row.metrics = metrics.iter().flat_map(statistics).collect();
        row.newer = metrics
            .iter()
            .map(|metric| (format!("{}_p10", metric.name), number(&metric.values, |values| values.percentile(10.0))))
            .collect();
        Some(row)
    }

    /// Every column of the table.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.metadata.iter().chain(&self.metrics).chain(&self.newer).chain(&self.ours)
    }
}

/// The time of one launch in each window. A clock with a fixed cost per window has it taken off.
fn milliseconds(record: &Record) -> Vec<f64> {
    let median = record.time_ns.map(|time| time.median).filter(|_| record.stopwatch.as_deref() == Some("slope"));
    let over = |launches: u32, nanos: u64| median.map(|median| nanos as f64 - median * f64::from(launches));
    let fixed = Sorted::new(record.windows.iter().filter_map(|w| over(w.launches, w.nanos)).collect());
    let fixed = fixed.map_or(0.0, |fixed| fixed.percentile(50.0).max(0.0));
    record.windows.iter().map(|w| (w.nanos as f64 - fixed) / f64::from(w.launches) / 1e6).collect()
}

/// Operations and bytes as they count them, or as we do.
fn counts(case: &Case) -> (Option<u64>, Option<u64>) {
    let published = case.published.unwrap_or_default();
    (published.flops.or(case.flops), published.bytes.or(case.bytes))
}

/// The sizes, in their order where they have one.
fn axes(case: &Case, order: &[&str]) -> Vec<Column> {
    let first = order.iter().filter_map(|axis| Some((*axis, case.shape.get(axis)?)));
    let rest = case.shape.iter().filter(|(axis, _)| !order.contains(axis));
    first.chain(rest).map(|(axis, size)| (axis.to_owned(), Cell::Whole(size))).collect()
}

/// The number types that stand behind the sizes, for the benchmarks that have them there.
fn types(case: &Case) -> Option<Column> {
    let output = case.output_dtype.as_deref().unwrap_or("e4m3");
    match case.workload.as_str() {
        "gemm_multiple_run" => Some(("dtype".into(), Cell::Text(jax_name(&case.dtype)))),
        "quantization" => Some(("quant_dtype".into(), Cell::Text(jax_name(output)))),
        name if name.starts_with("inference_") => Some(("dtype".into(), Cell::Text(jax_name(&case.dtype)))),
        _ => None,
    }
}

/// The number types that one benchmark has behind its counts, in its own words for them.
fn types_of_products(case: &Case) -> Vec<Column> {
    if case.workload != "gemm_simple_with_dtype" {
        return Vec::new();
    }
    let word = |dtype: &str| {
        Cell::Text(match dtype {
            "e4m3" => "fp8".into(),
            "f16" => "fp16".into(),
            "f32" => "fp32".into(),
            other => other.into(),
        })
    };
    let output = case.output_dtype.as_deref().unwrap_or("bf16");
    vec![("in_dtype".into(), word(&case.dtype)), ("out_dtype".into(), word(output))]
}

fn jax_name(dtype: &str) -> String {
    let name = match dtype {
        "bf16" => "bfloat16",
        "f16" => "float16",
        "f32" => "float32",
        "e4m3" => "float8_e4m3fn",
        "e5m2" => "float8_e5m2",
        "e2m1" => "float4_e2m1fn",
        "i8" => "int8",
        "i32" => "int32",
        other => other,
    };
    name.to_owned()
}

/// Bytes of one number.
fn width(dtype: &str) -> Option<u64> {
    match dtype {
        "f32" | "i32" => Some(4),
        "f16" | "bf16" => Some(2),
        "e4m3" | "e5m2" | "i8" => Some(1),
        _ => None,
    }
}

fn medians<'a>(names: &'a [&str], metrics: &'a [Metric]) -> impl Iterator<Item = Column> + 'a {
    let median = |metric: &Metric| number(&metric.values, |values| values.percentile(50.0));
    names.iter().zip(metrics).map(move |(name, metric)| ((*name).to_owned(), median(metric)))
}

fn statistics(metric: &Metric) -> Vec<Column> {
    let cell = |name: &str| match name {
        "num_runs" => metric.values.as_ref().map_or(Cell::Empty, |values| Cell::Whole(values.len() as u64)),
        "avg" => number(&metric.values, Sorted::mean),
        "max" => number(&metric.values, |values| values.ends().1),
        "min" => number(&metric.values, |values| values.ends().0),
        percent => {
            let percent = percent.trim_start_matches('p').parse().unwrap_or(50.0);
            number(&metric.values, |values| values.percentile(percent))
        }
    };
    NAMES.iter().map(|name| (format!("{}_{name}", metric.name), cell(name))).collect()
}

fn number(values: &Option<Sorted>, of: impl Fn(&Sorted) -> f64) -> Cell {
    values.as_ref().map_or(Cell::Empty, |values| Cell::Number(of(values)))
}

/// Which test it was and when, in the form of their pipeline.
fn test(record: &Record) -> Vec<Column> {
    let time = |time: &Option<String>| {
        let parsed = time.as_deref().and_then(|time| DateTime::parse_from_rfc3339(time).ok());
        // They put a Z behind the offset.
        parsed.map_or(Cell::Empty, |time| {
            Cell::Text(time.with_timezone(&Utc).format("%Y-%m-%dT%H:%M:%S%.6f+00:00Z").to_string())
        })
    };
    vec![
        ("testsuite".into(), Cell::Text("microbenchmark".into())),
        ("test_name".into(), Cell::Text(record.case.workload.clone())),
        ("test_start_timestamp".into(), time(&record.started)),
        ("test_end_timestamp".into(), time(&record.ended)),
    ]
}

fn ours(case: &Case) -> Vec<Column> {
    let columns = [("implementation", &case.implementation), ("device", &case.device), ("regime", &case.regime)];
    columns.map(|(name, text)| (name.to_owned(), Cell::Text(text.clone()))).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Axes, Estimate, Roofline, Window};

    fn product(stopwatch: &str, windows: &[(u32, u64)]) -> Record {
        let case =
            Case { workload: "gemm".into(), shape: Axes::from([("m", 1), ("k", 1), ("n", 1)]), ..Case::default() };
        Record {
            case: Case { flops: Some(200), ..case },
            stopwatch: Some(stopwatch.into()),
            time_ns: Some(Estimate { median: 100.0, lo: None, hi: None }),
            windows: windows.iter().map(|&(launches, nanos)| Window { launches, nanos }).collect(),
            roofline: Some(Roofline { peak_tflops: Some(0.004), ..Roofline::default() }),
            ..Record::new(Case::default(), Status::Ok)
        }
    }

    fn value(record: &Record, column: &str) -> Cell {
        let row = Row::of(record).unwrap();
        row.columns().find(|(name, _)| name == column).unwrap().1.clone()
    }

    #[test]
    fn the_fixed_cost_of_a_window_is_no_time_of_a_launch() {
        let windows = [(10, 2000), (20, 3000), (30, 4000)];
        assert_eq!(value(&product("slope", &windows), "step_time_ms_max"), Cell::Number(1e-4));
        assert_eq!(value(&product("cupti", &windows), "step_time_ms_max"), Cell::Number(2e-4));
    }

    #[test]
    fn utilisation_is_held_against_the_peak_that_was_measured() {
        let record = product("cupti", &[(1, 100)]);
        assert_eq!(value(&record, "tflops_per_sec_p50"), Cell::Number(0.002));
        assert!(matches!(value(&record, "MFU"), Cell::Number(share) if (share - 0.5).abs() < 1e-12));
        let unknown = Record { roofline: None, ..record };
        assert_eq!((value(&unknown, "MFU"), value(&unknown, "MFU_num_runs")), (Cell::Empty, Cell::Empty));
    }

    #[test]
    fn what_was_not_measured_right_has_no_row() {
        let record = product("cupti", &[(1, 100)]);
        assert!(Row::of(&Record { status: Status::Mismatch, ..record.clone() }).is_none());
        assert!(Row::of(&Record { windows: vec![], ..record }).is_none());
    }
}
