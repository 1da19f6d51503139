//! Row of accelerator-microbenchmarks: facts of the case, statistics of each metric, then the columns that only
//! Calorimeter writes.

use super::statistics::{STATISTIC_NAMES, SortedValues};
use crate::columns::Cell;
use crate::python::text;
use calorimeter_case::record::{Record, Status};
use calorimeter_case::{Case, Dtype, Element};
use chrono::{DateTime, Utc};

/// Cell with the name of its column; `None` if not measured.
pub(super) type NamedCell = (String, Option<Cell<'static>>);

/// Columns of a record, in order.
#[derive(Clone, Debug)]
pub(super) struct AcceleratorRow {
    /// Case and its medians.
    pub metadata: Vec<NamedCell>,
    /// Statistics of each metric.
    pub metrics: Vec<NamedCell>,
    /// Statistics that were added later, after all other statistics so that column positions are stable.
    pub newer: Vec<NamedCell>,
    /// Columns that only Calorimeter writes: implementation, device and regime.
    pub own: Vec<NamedCell>,
}

/// Measurements of a metric; `None` if not computable.
struct AcceleratorMetric {
    name: &'static str,
    values: Option<SortedValues>,
}

impl AcceleratorMetric {
    fn new(name: &'static str, values: Option<Vec<f64>>) -> Self {
        Self { name, values: values.and_then(SortedValues::new) }
    }
}

impl AcceleratorRow {
    /// Row of a case with individually timed launches.
    pub(super) fn from_record(record: &Record) -> Option<Self> {
        let case = &record.case;
        if record.outcome.status != Status::Ok || record.time.iterations_ns.is_empty() {
            return None;
        }
        let has = |axes: &[&str]| axes.iter().all(|axis| case.shape.get(axis).is_some());
        let (mut metadata, metrics) = match case.workload.as_str() {
            "single_device_hbm_copy" => copy(record),
            _ if has(&["m", "k", "n"]) => matmul(record),
            _ if has(&["data_size_mib"]) => transfer(record),
            _ if has(&["devices"]) => exchange(record),
            _ => traffic(record),
        };
        if case.export.as_ref().is_some_and(|export| export.metrics_dir.is_some()) {
            metadata.extend(test_columns(record));
        }
        let p10 = |metric: &AcceleratorMetric| number(&metric.values, |values| values.percentile(10.0));
        Some(Self {
            metadata,
            newer: metrics.iter().map(|metric| (format!("{}_p10", metric.name), p10(metric))).collect(),
            metrics: metrics.iter().flat_map(statistics).collect(),
            own: own_columns(case),
        })
    }

    /// Every column of the table.
    pub(super) fn columns(&self) -> impl Iterator<Item = &NamedCell> {
        self.metadata.iter().chain(&self.metrics).chain(&self.newer).chain(&self.own)
    }
}

fn copy(record: &Record) -> (Vec<NamedCell>, Vec<AcceleratorMetric>) {
    let (case, times) = (&record.case, milliseconds(record));
    let gigabytes = counts(case).1.map(|bytes| bytes as f64 / 1e9);
    let mut metadata = axes(case, &[]);
    metadata.push(("dtype".into(), width(case.element).map(Cell::Count)));
    metadata.push(("tensor_size_gbytes".into(), gigabytes.map(Cell::Number)));
    let bandwidth = rates(&times, gigabytes, 1.0);
    (metadata, vec![AcceleratorMetric::new("time_ms", Some(times)), AcceleratorMetric::new("bw_gbyte_sec", bandwidth)])
}

fn matmul(record: &Record) -> (Vec<NamedCell>, Vec<AcceleratorMetric>) {
    const MEDIANS: [&str; 4] =
        ["StepTime(median,ms)", "Throughput(median,TFLOP/s/device)", "TotalThroughput(median,TFLOP/s)", "MFU"];
    let (case, times) = (&record.case, milliseconds(record));
    let (flops, peak) = (counts(case).0, record.rates.roofline.as_ref().and_then(|roof| roof.peak_tflops));
    let tflops = rates(&times, flops.map(|flops| flops as f64), 1e12);
    let of_peak = |(rates, peak): (Vec<f64>, f64)| rates.into_iter().map(|rate| rate / peak).collect();
    let metrics = vec![
        AcceleratorMetric::new("step_time_ms", Some(times)),
        // Original spelling. With one device the total equals the rate per device.
        AcceleratorMetric::new("tflops_per_sec_pre_device", tflops.clone()),
        AcceleratorMetric::new("tflops_per_sec", tflops.clone()),
        AcceleratorMetric::new("MFU", tflops.zip(peak).map(of_peak)),
    ];
    let mut metadata = axes(case, &["m", "n", "k"]);
    metadata.extend(dtype_column(case));
    metadata.extend(medians(&MEDIANS, &metrics));
    metadata.push(("total_flops".into(), flops.map(Cell::Count)));
    metadata.extend(matmul_dtype_columns(case));
    (metadata, metrics)
}

fn traffic(record: &Record) -> (Vec<NamedCell>, Vec<AcceleratorMetric>) {
    const MEDIANS: [&str; 3] =
        ["StepTime(median,ms)", "Throughput(median,GBytes/s/device)", "TotalThroughput(median,GBytes/s)"];
    let (case, times) = (&record.case, milliseconds(record));
    let bytes = counts(case).1;
    let rates = rates(&times, bytes.map(|bytes| bytes as f64), 1e9);
    let metrics = vec![
        AcceleratorMetric::new("step_time_ms", Some(times)),
        AcceleratorMetric::new("Gbytes_per_sec_per_device", rates.clone()),
        AcceleratorMetric::new("Gbytes_per_sec", rates),
    ];
    let mut metadata = axes(case, &[]);
    metadata.extend(dtype_column(case));
    metadata.extend(medians(&MEDIANS, &metrics));
    metadata.push(("total_bytes".into(), bytes.map(Cell::Count)));
    (metadata, metrics)
}

/// Transfer between host and device. Simultaneous transfers in both directions have one common time.
fn transfer(record: &Record) -> (Vec<NamedCell>, Vec<AcceleratorMetric>) {
    const WAYS: [&str; 2] = ["H2D_bw (GiB/s)", "D2H_bw (GiB/s)"];
    let (case, times) = (&record.case, milliseconds(record));
    let gibibytes = case.shape.get("data_size_mib").map(|mebibytes| mebibytes as f64 / 1024.0);
    let rates = |ways: f64| rates(&times, gibibytes.map(|size| ways * size), 1.0);
    let metrics = match case.workload.as_str().trim_start_matches("pageable_") {
        "host_to_device" => vec![AcceleratorMetric::new(WAYS[0], rates(1.0))],
        "device_to_host" => vec![AcceleratorMetric::new(WAYS[1], rates(1.0))],
        _ => vec![
            AcceleratorMetric::new(WAYS[0], None),
            AcceleratorMetric::new(WAYS[1], None),
            AcceleratorMetric::new("both_bw (GiB/s)", rates(2.0)),
            AcceleratorMetric::new("step_time_ms", Some(times.clone())),
        ],
    };
    (axes(case, &[]), metrics)
}

/// Transfer between devices.
fn exchange(record: &Record) -> (Vec<NamedCell>, Vec<AcceleratorMetric>) {
    let (case, times) = (&record.case, milliseconds(record));
    let gigabytes = counts(case).1.map(|bytes| bytes as f64 / 1e9);
    let mut metadata = axes(case, &[]);
    metadata.push(("transferred_data (GB)".into(), gigabytes.map(Cell::Number)));
    metadata.push(("dtype_bytes".into(), width(case.element).map(Cell::Count)));
    let bandwidth = rates(&times, gigabytes, 1.0);
    (
        metadata,
        vec![
            AcceleratorMetric::new("step_time_ms", Some(times)),
            AcceleratorMetric::new("achieved_bw (GB/s)", bandwidth),
        ],
    )
}

fn milliseconds(record: &Record) -> Vec<f64> {
    record.time.iterations_ns.iter().map(|&nanos| nanos as f64 / 1e6).collect()
}

/// Amount per second in a unit, with the order of operations of accelerator-microbenchmarks.
fn rates(milliseconds: &[f64], amount: Option<f64>, unit: f64) -> Option<Vec<f64>> {
    amount.map(|amount| milliseconds.iter().map(|time| amount / (time / 1e3) / unit).collect())
}

/// Operation and byte counts of accelerator-microbenchmarks, or else of Calorimeter.
fn counts(case: &Case) -> (Option<u64>, Option<u64>) {
    let published = case.published.as_deref().copied().unwrap_or_default();
    (published.flops.or(case.flops), published.bytes.or(case.bytes))
}

/// Sizes, with the axes of `order` first.
fn axes(case: &Case, order: &[&str]) -> Vec<NamedCell> {
    let first = order.iter().filter_map(|axis| Some((*axis, case.shape.get(axis)?)));
    let rest = case.shape.iter().filter(|(axis, _)| !order.contains(axis));
    first.chain(rest).map(|(axis, size)| (axis.to_owned(), Some(Cell::Count(size)))).collect()
}

/// Dtype column after the sizes; `None` for benchmarks without such a column.
fn dtype_column(case: &Case) -> Option<NamedCell> {
    let output = case.output.unwrap_or(Element::E4m3);
    match case.workload.as_str() {
        "gemm_multiple_run" => Some(("dtype".into(), text(jax_name(case.element)))),
        "quantization" => Some(("quant_dtype".into(), text(jax_name(output)))),
        name if name.starts_with("inference_") => Some(("dtype".into(), text(jax_name(case.element)))),
        _ => None,
    }
}

/// Dtype columns after the counts, in the notation of `gemm_simple_with_dtype`; empty for other benchmarks.
fn matmul_dtype_columns(case: &Case) -> Vec<NamedCell> {
    if case.workload != "gemm_simple_with_dtype" {
        return Vec::new();
    }
    let word = |element: Element| {
        text(match element {
            Element::E4m3 => "fp8".into(),
            Element::Float(Dtype::F16) => "fp16".into(),
            Element::Float(Dtype::F32) => "fp32".into(),
            other => other.to_string(),
        })
    };
    let output = case.output.unwrap_or(Element::Float(Dtype::Bf16));
    vec![("in_dtype".into(), word(case.element)), ("out_dtype".into(), word(output))]
}

fn jax_name(element: Element) -> String {
    let name = match element {
        Element::Float(Dtype::Bf16) => "bfloat16",
        Element::Float(Dtype::F16) => "float16",
        Element::Float(Dtype::F32) => "float32",
        Element::E4m3 => "float8_e4m3fn",
        Element::E5m2 => "float8_e5m2",
        Element::E2m1 => "float4_e2m1fn",
        Element::Signed(8) => "int8",
        Element::Signed(32) => "int32",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// Bytes per element, if whole.
fn width(element: Element) -> Option<u64> {
    (element.bits().is_multiple_of(8)).then(|| u64::from(element.bits() / 8))
}

fn medians<'a>(names: &'a [&str], metrics: &'a [AcceleratorMetric]) -> impl Iterator<Item = NamedCell> + 'a {
    let median = |metric: &AcceleratorMetric| number(&metric.values, |values| values.percentile(50.0));
    names.iter().zip(metrics).map(move |(name, metric)| ((*name).to_owned(), median(metric)))
}

fn statistics(metric: &AcceleratorMetric) -> Vec<NamedCell> {
    let cell = |name: &str| match name {
        "num_runs" => metric.values.as_ref().map(|values| Cell::Count(values.len() as u64)),
        "avg" => number(&metric.values, SortedValues::mean),
        "max" => number(&metric.values, |values| values.min_max().1),
        "min" => number(&metric.values, |values| values.min_max().0),
        percent => {
            let percent = percent.trim_start_matches('p').parse().unwrap_or(50.0);
            number(&metric.values, |values| values.percentile(percent))
        }
    };
    STATISTIC_NAMES.iter().map(|name| (format!("{}_{name}", metric.name), cell(name))).collect()
}

fn number(values: &Option<SortedValues>, of: impl Fn(&SortedValues) -> f64) -> Option<Cell<'static>> {
    values.as_ref().map(|values| Cell::Number(of(values)))
}

/// Parses a time of a record.
pub(super) fn utc_time(time: &Option<String>) -> Option<DateTime<Utc>> {
    Some(DateTime::parse_from_rfc3339(time.as_deref()?).ok()?.with_timezone(&Utc))
}

/// Name and time of the test, in the format of accelerator-microbenchmarks.
fn test_columns(record: &Record) -> Vec<NamedCell> {
    // The original appends a Z to the offset.
    let time = |time| utc_time(time).and_then(|time| text(time.format("%Y-%m-%dT%H:%M:%S%.6f+00:00Z")));
    vec![
        ("testsuite".into(), text("microbenchmark")),
        ("test_name".into(), text(record.case.workload)),
        ("test_start_timestamp".into(), time(&record.outcome.started)),
        ("test_end_timestamp".into(), time(&record.outcome.ended)),
    ]
}

fn own_columns(case: &Case) -> Vec<NamedCell> {
    let columns = [
        ("implementation", case.implementation.to_string()),
        ("device", case.device.to_string()),
        ("regime", case.regime.to_string()),
    ];
    columns.map(|(name, cell)| (name.to_owned(), text(cell))).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Axes;
    use calorimeter_case::record::{Outcome, Rates, Time};
    use calorimeter_case::record::{Roofline, WindowRecord};

    fn measured(iterations_ns: &[u64]) -> Record {
        let case =
            Case { workload: "gemm".into(), shape: Axes::from([("m", 1), ("k", 1), ("n", 1)]), ..Case::default() };
        Record {
            case: Case { flops: Some(200), ..case },
            time: Time {
                windows: vec![WindowRecord { launches: 100, nanos: 20_000, ..WindowRecord::default() }],
                iterations_ns: iterations_ns.to_vec(),
                ..Time::default()
            },
            rates: Rates {
                roofline: Some(Roofline { peak_tflops: Some(0.004), ..Roofline::default() }.into()),
                ..Rates::default()
            },
            ..Record::new(Case::default(), Status::Ok)
        }
    }

    fn value(record: &Record, column: &str) -> Option<Cell<'static>> {
        let row = AcceleratorRow::from_record(record).unwrap();
        row.columns().find(|(name, _)| name == column).unwrap().1.clone()
    }

    fn is_near(record: &Record, column: &str, expected: f64) -> bool {
        matches!(value(record, column), Some(Cell::Number(found)) if (found / expected - 1.0).abs() < 1e-12)
    }

    #[test]
    fn percentiles_are_over_single_launches() {
        let record = measured(&[&[100; 90][..], &[9000; 10]].concat());
        assert!(is_near(&record, "step_time_ms_p50", 1e-4) && is_near(&record, "step_time_ms_p99", 9e-3));
        assert_eq!(value(&record, "step_time_ms_num_runs"), Some(Cell::Count(100)));
    }

    #[test]
    fn utilization_is_relative_to_the_measured_peak() {
        let record = measured(&[100]);
        assert!(is_near(&record, "tflops_per_sec_p50", 0.002) && is_near(&record, "MFU", 0.5));
        let unknown = Record { rates: Rates { roofline: None, ..record.rates.clone() }, ..record };
        assert_eq!((value(&unknown, "MFU"), value(&unknown, "MFU_num_runs")), (None, None));
    }

    #[test]
    fn failed_cases_have_no_row() {
        let record = measured(&[100]);
        assert!(
            AcceleratorRow::from_record(&Record {
                outcome: Outcome { status: Status::Mismatch, ..record.outcome.clone() },
                ..record.clone()
            })
            .is_none()
        );
        assert!(
            AcceleratorRow::from_record(&Record {
                time: Time { iterations_ns: vec![], ..record.time.clone() },
                ..record
            })
            .is_none()
        );
    }

    /// Record of a launch of one millisecond with these axes.
    fn transfer_record(workload: &str, axes: &[(&'static str, u64)]) -> Record {
        let shape = axes.iter().copied().collect();
        let case = Case { workload: workload.parse().unwrap(), shape, bytes: Some(3_000_000), ..Case::default() };
        Record { case: Case { element: "bf16".parse().unwrap(), ..case }, ..measured(&[1_000_000]) }
    }

    fn metrics(record: &Record) -> Vec<(String, Option<Cell<'static>>)> {
        let columns = AcceleratorRow::from_record(record).unwrap().metrics.into_iter();
        columns.filter_map(|(name, cell)| Some((name.strip_suffix("_p50")?.to_owned(), cell))).collect()
    }

    #[test]
    fn copies_have_bandwidth_per_direction() {
        let (to, from) = ("H2D_bw (GiB/s)".to_owned(), "D2H_bw (GiB/s)".to_owned());
        let copied = |name: &str| metrics(&transfer_record(name, &[("data_size_mib", 512)]));
        for pinned in ["", "pageable_"] {
            assert_eq!(copied(&format!("{pinned}host_to_device")), [(to.clone(), Some(Cell::Number(500.0)))]);
            assert_eq!(copied(&format!("{pinned}device_to_host")), [(from.clone(), Some(Cell::Number(500.0)))]);
        }
        let both = [
            ("both_bw (GiB/s)".to_owned(), Some(Cell::Number(1000.0))),
            ("step_time_ms".into(), Some(Cell::Number(1.0))),
        ];
        for name in ["host_device", "host_device_both", "pageable_host_device_both"] {
            let found = copied(name);
            assert_eq!(found[..2], [(to.clone(), None), (from.clone(), None)], "{name}");
            assert_eq!(found[2..], both, "{name}");
        }
    }

    #[test]
    fn exchanges_have_achieved_bandwidth() {
        for (name, axis) in [("psum", "matrix_dim"), ("send_recv", "num_elements")] {
            let record = transfer_record(name, &[(axis, 8), ("devices", 2)]);
            let expected = [
                ("step_time_ms".to_owned(), Some(Cell::Number(1.0))),
                ("achieved_bw (GB/s)".into(), Some(Cell::Number(3.0))),
            ];
            assert_eq!(metrics(&record), expected);
            let facts: Vec<String> =
                AcceleratorRow::from_record(&record).unwrap().metadata.into_iter().map(|(name, _)| name).collect();
            assert_eq!(facts, [axis, "devices", "transferred_data (GB)", "dtype_bytes"]);
        }
    }
}
