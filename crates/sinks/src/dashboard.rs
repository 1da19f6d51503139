//! The JSON list that the PyTorch benchmark database takes from torchao's nightly micro-benchmarks.

use calorimeter_case::record::Footprint;
use std::path::Path;

use serde::Serialize;

use crate::pivot::{self, Arm, Row};
use crate::{SinkError, atomic};
use calorimeter_case::record::Record;
use calorimeter_case::{DeviceKind, Dtype, Element};

/// Writes [`to_json`] at `path`, atomically.
pub fn write(path: &Path, records: &[Record], arch: &str) -> Result<(), SinkError> {
    let json = to_json(records, arch).map_err(|cause| SinkError::format(path, cause))?;
    atomic::write_named(path, json.as_bytes())
}

/// Four entries for each recipe and shape that the user listed and of which the compiled arm and its baseline were
/// measured: the speed-up with two decimals, both times in ms, and the peak memory in 10⁶ bytes, which is left out where it
/// is unknown. `arch` is the name of the device model.
///
/// Compiled means the fastest implementation that is not `eager`. The time of the baseline is called
/// `Bfloat16 Fwd Time (ms)` when it is bf16 and by its own dtype otherwise, where torchao says bfloat16 in any case.
/// An entry without a compile mode gets `default`, which is what torchao takes it to be.
pub fn to_json(records: &[Record], arch: &str) -> Result<String, serde_json::Error> {
    let entries: Vec<Entry> = pivot::rows(records).iter().flat_map(|row| entries(row, arch)).collect();
    serde_json::to_string_pretty(&entries)
}

fn entries<'a>(row: &Row<'a>, arch: &'a str) -> Vec<Entry<'a>> {
    let (Some(quantised), Some(baseline), Some(speedup)) = (
        row.compiled.milliseconds(),
        row.baseline_compiled.milliseconds(),
        row.compiled.speedup_over(row.baseline_compiled),
    ) else {
        return Vec::new();
    };
    let mut metrics = vec![
        Metric::new("Fwd Speedup (x)".into(), speedup, None),
        Metric::new(format!("{} Fwd Time (ms)", dtype_label(row.case.element)), baseline, Some("ms")),
        Metric::new("Quantized Fwd Time (ms)".into(), quantised, Some("ms")),
    ];
    if let Arm(Some(Record { footprint: Footprint { peak_bytes: Some(bytes), .. }, .. })) = row.compiled {
        metrics.push(Metric::new("Allocated Memory (MB)".into(), *bytes as f64 / 1e6, Some("MB")));
    }
    metrics.into_iter().map(|metric| Entry::new(row, arch, metric)).collect()
}

fn dtype_label(element: Element) -> String {
    match element {
        Element::Float(Dtype::Bf16) => "Bfloat16".into(),
        Element::Float(Dtype::F16) => "Float16".into(),
        Element::Float(Dtype::F32) => "Float32".into(),
        other => other.to_string().to_uppercase(),
    }
}

/// The order of the fields is the order of the keys.
#[derive(Serialize)]
struct Entry<'a> {
    benchmark: Benchmark<'a>,
    model: Model,
    metric: Metric,
    runners: [(); 0],
    dependencies: Empty,
}

impl<'a> Entry<'a> {
    fn new(row: &Row<'a>, arch: &'a str, metric: Metric) -> Entry<'a> {
        let case = row.case;
        Entry {
            benchmark: Benchmark {
                name: "micro-benchmark api",
                mode: case.mode.name(),
                dtype: case.recipe.as_str(),
                extra_info: Machine {
                    device: case.device.kind(),
                    arch,
                    torch_compile_mode: case.compile_mode.as_deref().unwrap_or("default"),
                },
            },
            model: Model {
                name: format!("{}-{}-{}-{}", case.recipe, row.m, row.k, row.n),
                r#type: "micro-benchmark custom layer",
                origins: ["torchao"],
            },
            metric,
            runners: [],
            dependencies: Empty {},
        }
    }
}

#[derive(Serialize)]
struct Benchmark<'a> {
    name: &'static str,
    mode: &'a str,
    dtype: &'a str,
    extra_info: Machine<'a>,
}

#[derive(Serialize)]
struct Machine<'a> {
    device: DeviceKind,
    arch: &'a str,
    torch_compile_mode: &'a str,
}

#[derive(Serialize)]
struct Model {
    name: String,
    r#type: &'static str,
    origins: [&'static str; 1],
}

#[derive(Serialize)]
struct Metric {
    name: String,
    benchmark_values: [f64; 1],
    target_value: f64,
    extra_info: Unit,
}

impl Metric {
    fn new(name: String, value: f64, unit: Option<&'static str>) -> Metric {
        Metric { name, benchmark_values: [value], target_value: 0.0, extra_info: Unit { unit } }
    }
}

#[derive(Serialize)]
struct Unit {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
}

#[derive(Serialize)]
struct Empty {}
