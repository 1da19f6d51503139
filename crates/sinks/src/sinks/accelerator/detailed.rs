//! `detailed.json` and `summary.csv` of accelerator-microbenchmarks version 2.

use super::ordered_object::OrderedObject;
use super::row::utc_time;
use super::statistics::SortedValues;
use crate::python::format_float;
use crate::sink::SinkInput;
use crate::spreadsheet::escape_formula;
use crate::{SinkError, atomic};
use calorimeter_case::Device;
use calorimeter_case::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;

/// Benchmark of a version 2 file, with its parameters in the order of the results. Displayed as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkRequest {
    /// Name in the results, such as `GeneralizedGemmBenchmark`.
    pub class: String,
    /// Parameters with their values.
    pub params: Vec<(String, Value)>,
    /// Parameters that determine sizes: name, axis, and size of the axis per unit of the parameter.
    pub sizes: Vec<(String, String, u64)>,
}

impl fmt::Display for BenchmarkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        serde_json::to_string(self).map_err(|_| fmt::Error)?.fmt(f)
    }
}

type NamedValues = Vec<(String, Value)>;

/// Result of a case in `detailed.json`.
#[derive(Serialize)]
struct DetailedResult {
    metadata: ResultMetadata,
    metrics: OrderedObject<Value>,
    raw_times_ms: Vec<f64>,
}

#[derive(Serialize)]
struct ResultMetadata {
    benchmark_name: String,
    test_name: String,
    start_time: Option<String>,
    end_time: Option<String>,
    params: OrderedObject<Value>,
    device_info: OrderedObject<Value>,
}

/// Writes both files if the run has results of version 2 benchmarks.
pub(super) fn write(run: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
    let mut results = Vec::new();
    for record in &run.records {
        if record.is_ok() && record.case.export.as_ref().is_some_and(|export| export.benchmark.is_some()) {
            results.extend(DetailedResult::from_record(&*run.with_series(record)?, run));
        }
    }
    if results.is_empty() {
        return Ok(Vec::new());
    }
    let (json, csv) = (run.dir.join("detailed.json"), run.dir.join("summary.csv"));
    let text = serde_json::to_string_pretty(&results).map_err(|cause| SinkError::format(&json, cause))?;
    atomic::write(&json, text.as_bytes())?;
    atomic::write(&csv, &summary(&results).map_err(|cause| SinkError::format(&csv, cause))?)?;
    Ok(vec![json, csv])
}

impl DetailedResult {
    /// Result of a case with individually timed launches.
    fn from_record(record: &Record, run: &SinkInput) -> Option<Self> {
        let case = &record.case;
        let request: BenchmarkRequest = serde_json::from_str(case.export.as_ref()?.benchmark.as_deref()?).ok()?;
        let raw_times_ms: Vec<f64> = record.time.iterations_ns.iter().map(|&nanos| nanos as f64 / 1e6).collect();
        let mut params = request.params;
        for (parameter, axis, factor) in &request.sizes {
            // The size of the case may be scaled.
            let size = case.shape.get(axis)?;
            let value: Value = match size.is_multiple_of(*factor) {
                true => (size / factor).into(),
                false => (size as f64 / *factor as f64).into(),
            };
            set(&mut params, parameter, value);
        }
        let (started, ended) = (utc_time(&record.outcome.started), utc_time(&record.outcome.ended));
        let time = |time: chrono::DateTime<chrono::Utc>| time.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string();
        let metrics = metrics(record, &request.class, &params, &raw_times_ms)?;
        let metadata = ResultMetadata {
            test_name: format!("{}_{}", request.class, ended.map_or(0, |time| time.timestamp())),
            benchmark_name: request.class,
            start_time: started.map(time),
            end_time: ended.map(time),
            params: OrderedObject(params),
            device_info: OrderedObject(device_info(record, run)),
        };
        Some(Self { metadata, metrics: OrderedObject(metrics), raw_times_ms })
    }

    /// Row of `summary.csv`.
    fn row(&self) -> NamedValues {
        let ResultMetadata { benchmark_name, test_name, start_time, params, device_info, .. } = &self.metadata;
        let metric = |name: &str| get(&self.metrics.0, name).cloned();
        let throughput = metric("tflops_per_sec").or_else(|| metric("bandwidth_gb_s"));
        let more = [
            ("benchmark", benchmark_name.as_str().into()),
            ("test_name", test_name.as_str().into()),
            ("KET_ms", metric("avg_ms").unwrap_or_default()),
            ("throughput", throughput.unwrap_or_else(|| 0.0.into())),
            ("start", start_time.as_deref().into()),
        ];
        let mut row = params.0.clone();
        for (name, value) in self.metrics.0.iter().chain(&device_info.0) {
            set(&mut row, name, value.clone());
        }
        more.into_iter().for_each(|(name, value)| set(&mut row, name, value));
        row
    }
}

fn get<'a>(values: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    values.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// Replaces a value in place, or appends it.
fn set(values: &mut NamedValues, name: &str, value: Value) {
    match values.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = value,
        None => values.push((name.to_owned(), value)),
    }
}

/// Properties of the device, followed by the keys that only Calorimeter writes.
fn device_info(record: &Record, run: &SinkInput) -> NamedValues {
    let case = &record.case;
    let platform = match case.device {
        Device::Cpu => "cpu".to_owned(),
        Device::Cuda(_) | Device::Vulkan(_) | Device::Metal(_) => "gpu".to_owned(),
        other => other.to_string(),
    };
    let count = case.shape.get("devices").unwrap_or(1);
    let values = [
        ("platform", platform.into()),
        ("device_count", count.into()),
        ("local_device_count", count.into()),
        ("chip_version", run.device_name(case.device).into()),
        ("calorimeter_version", run.header.environment["calorimeter"].clone()),
        ("implementation", case.implementation.to_string().into()),
        ("device", case.device.to_string().into()),
        ("regime", case.regime.to_string().into()),
    ];
    values.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Metrics of a case, in the order of accelerator-microbenchmarks; `None` without times.
fn metrics(record: &Record, class: &str, params: &NamedValues, times: &[f64]) -> Option<NamedValues> {
    let case = &record.case;
    let values = without_outliers(times)?;
    let average = values.mean();
    let seconds = average / 1e3;
    let flops = case.flops.filter(|flops| *flops > 0).map(|flops| flops as f64);
    let bytes = case.bytes.map(|bytes| bytes as f64);
    let intensity = flops.zip(bytes).map(|(flops, bytes)| flops / bytes);
    let bandwidth = bytes.map(|bytes| bytes / seconds / 1e9);
    let megabytes = bytes.map(|bytes| bytes / 1e6);
    let shard = |per_row: u64| {
        let size = case.shape.get("matrix_dim")? * per_row * u64::from(case.element.bits()) / 8;
        Some(size as f64 / 1e6)
    };
    let tflops = flops.map(|flops| flops / seconds / 1e12);
    let own: Vec<(&str, Option<f64>)> = match class {
        "GeneralizedGemmBenchmark" | "AttentionBenchmark" => {
            vec![("tflops_per_sec", tflops), ("total_flops", flops), ("intensity", intensity)]
        }
        "HBMBandwidthBenchmark" => {
            vec![("bandwidth_gb_s", bandwidth), ("total_bytes_mb", megabytes), ("intensity", intensity)]
        }
        // Despite its name, the bandwidth of these benchmarks is in GiB/s.
        "HostToDeviceBenchmark" | "DeviceToHostBenchmark" => vec![
            ("bandwidth_gb_s", bytes.map(|bytes| bytes / f64::from(1 << 30) / seconds)),
            ("total_bytes_mib", bytes.map(|bytes| bytes / f64::from(1 << 20))),
        ],
        // Both directions count, whereas `bytes` is the traffic in one of them.
        "DeviceToDeviceBenchmark" => vec![
            ("bandwidth_gb_s", bandwidth.map(|one_way| 2.0 * one_way)),
            ("total_bytes_mb", megabytes.map(|one_way| 2.0 * one_way)),
        ],
        "AllReduceBenchmark" | "AllGatherBenchmark" => {
            vec![("bandwidth_gb_s", bandwidth), ("shard_size_mb", shard(8 * 128))]
        }
        "ReduceScatterBenchmark" => vec![("bandwidth_gb_s", bandwidth), ("shard_size_mb", shard(256))],
        "AllToAllBenchmark" => vec![("bandwidth_gb_s", bandwidth), ("local_size_mb", shard(8 * 128))],
        _ => vec![("intensity", intensity)],
    };
    let own_value = |name: &str| own.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value);
    let roofline = roofline(record, params, intensity, own_value("tflops_per_sec"), own_value("bandwidth_gb_s"));
    let statistics = [
        ("p50_ms", Some(values.percentile(50.0))),
        ("p90_ms", Some(values.percentile(90.0))),
        ("avg_ms", Some(average)),
        ("std_ms", Some(values.deviation())),
        ("throughput", Some(0.0)),
    ];
    let duration = [("total_duration_s", Some(times.iter().sum::<f64>() / 1e3))];
    let mut metrics = NamedValues::new();
    let mut add = |values: &[(&str, Option<f64>)]| {
        metrics.extend(values.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.into()))));
    };
    add(&statistics);
    add(&own);
    add(&roofline);
    add(&duration);
    metrics.push(("actual_runs".into(), times.len().into()));
    // Two benchmarks repeat a parameter.
    let repeated = params.iter().filter(|(name, _)| ["op_type", "direction"].contains(&name.as_str()));
    metrics.extend(repeated.cloned());
    Some(metrics)
}

/// Removes times that are farther than 1.5 interquartile ranges from the quartiles. A list of at most three times
/// remains unchanged.
fn without_outliers(times: &[f64]) -> Option<SortedValues> {
    let all = SortedValues::new(times.to_vec())?;
    if all.len() <= 3 {
        return Some(all);
    }
    let (lower, upper) = (all.percentile(25.0), all.percentile(75.0));
    let margin = 1.5 * (upper - lower);
    let inside = |time: &f64| (lower - margin..=upper + margin).contains(time);
    SortedValues::new(times.iter().copied().filter(inside).collect()).or(Some(all))
}

/// Roofline metrics from the peaks of the file, or else from the measured peaks.
fn roofline(
    record: &Record,
    params: &NamedValues,
    intensity: Option<f64>,
    tflops: Option<f64>,
    bandwidth: Option<f64>,
) -> [(&'static str, Option<f64>); 4] {
    let in_file = get(params, "hardware_stats").and_then(Value::as_object).filter(|peaks| !peaks.is_empty());
    let (peak_tflops, peak_bandwidth) = match in_file {
        Some(peaks) => {
            let dtype = get(params, "in_dtype").or_else(|| get(params, "dtype")).and_then(Value::as_str);
            let bytes = record.case.bytes.map(|bytes| bytes as f64);
            (
                peaks.get("peak_tflops").and_then(|peak| peak_of_dtype(peak, dtype.unwrap_or_default())),
                peaks.get("hbm_bw").zip(bytes).and_then(|(peak, bytes)| peak_at_size(peak, bytes)),
            )
        }
        None => {
            let measured = record.rates.roofline.as_ref();
            measured.map_or((None, None), |measured| (measured.peak_tflops, measured.peak_gbps))
        }
    };
    let by_bandwidth = peak_bandwidth.zip(intensity).map(|(peak, intensity)| peak * intensity / 1e3);
    let limit = peak_tflops.zip(by_bandwidth).map(|(peak, limit)| limit.min(peak));
    let percent = |value: Option<f64>, of: Option<f64>| value.zip(of).map(|(value, of)| 100.0 * (value / of));
    [
        ("roofline_tflops_limit", limit),
        ("peak_bw_at_size_gb_s", peak_bandwidth),
        ("roofline_efficiency", percent(tflops, limit)),
        ("bw_efficiency", percent(bandwidth, peak_bandwidth)),
    ]
}

/// Peak for a dtype. A dtype without a peak has the peak of bfloat16.
fn peak_of_dtype(peak: &Value, dtype: &str) -> Option<f64> {
    peak.as_f64().or_else(|| peak.get(dtype).or_else(|| peak.get("bfloat16"))?.as_f64())
}

/// Bandwidth at a size in bytes, interpolated linearly.
fn peak_at_size(peak: &Value, bytes: f64) -> Option<f64> {
    let Some(table) = peak.as_object() else { return peak.as_f64() };
    let points = table.iter().filter_map(|(size, bandwidth)| Some((size.parse().ok()?, bandwidth.as_f64()?)));
    let mut points: Vec<(f64, f64)> = points.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let above = points.iter().position(|(size, _)| bytes <= *size).unwrap_or(points.len());
    match (above.checked_sub(1).and_then(|below| points.get(below)), points.get(above)) {
        (Some((x0, y0)), Some((x1, y1))) => Some(y0 + (y1 - y0) * (bytes - x0) / (x1 - x0)),
        (Some((_, end)), None) | (None, Some((_, end))) => Some(*end),
        (None, None) => None,
    }
}

/// Table with the columns of all rows, in the order of their first appearance.
fn summary(results: &[DetailedResult]) -> Result<Vec<u8>, ::csv::Error> {
    let rows: Vec<NamedValues> = results.iter().map(DetailedResult::row).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(&columns)?;
    for row in &rows {
        writer.write_record(columns.iter().map(|name| get(row, name).map(python_cell).unwrap_or_default()))?;
    }
    writer.into_inner().map_err(|failed| failed.into_error().into())
}

/// Cell in the notation of Python. Text is escaped, so that a spreadsheet does not interpret the text as a formula.
fn python_cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escape_formula(text.into()).into_owned(),
        other => python_repr(other),
    }
}

fn python_repr(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(flag) => if *flag { "True" } else { "False" }.into(),
        Value::Number(number) if number.is_f64() => format_float(number.as_f64().unwrap_or_default()),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(items) => format!("[{}]", items.iter().map(python_repr).collect::<Vec<_>>().join(", ")),
        Value::Object(object) => {
            // Keys that are numbers in the file are text in JSON.
            let key = |key: &String| if key.parse::<u64>().is_ok() { key.clone() } else { format!("'{key}'") };
            let items = object.iter().map(|(name, value)| format!("{}: {}", key(name), python_repr(value)));
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
    }
}
