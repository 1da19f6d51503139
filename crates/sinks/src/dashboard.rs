//! JSON list of the PyTorch benchmark database, as written by torchao's nightly micro-benchmarks.

use calorimeter_case::record::Footprint;
use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use crate::pivot::{self, PivotArm, PivotRow};
use crate::{SinkError, atomic};
use calorimeter_case::record::Record;
use calorimeter_case::{DeviceKind, Dtype, Element};

/// Writes [`to_json`] to `path` atomically; returns the number of entries.
pub fn write(path: &Path, records: &[Record], arch: &str) -> Result<usize, SinkError> {
    let rows = named_rows(records);
    let entries: Vec<DashboardEntry> = rows.iter().flat_map(|(row, name)| entries(row, name, arch)).collect();
    let json = serde_json::to_string_pretty(&entries).map_err(|cause| SinkError::format(path, cause))?;
    atomic::write_named(path, json.as_bytes())?;
    Ok(entries.len())
}

/// Entries of each recipe and shape that the user listed, if they and their baseline were measured.
///
/// For the compiled arm: speed-up with two decimals, both times in ms, and peak memory in 10⁶ bytes, as in torchao. For
/// the eager arm: speed-up and times. `arch` is the name of the device model.
///
/// The compiled arm is the fastest implementation other than `eager`. The baseline time is named `Bfloat16 Fwd Time
/// (ms)` for bf16 and after its own dtype otherwise, where torchao always writes bfloat16. An entry without a compile
/// mode gets `default`, as in torchao. Combinations of model name, recipe and metric are unique: if sizes do not
/// distinguish rows, distinguishing properties are appended to the name.
pub fn to_json(records: &[Record], arch: &str) -> Result<String, serde_json::Error> {
    let rows = named_rows(records);
    let entries: Vec<DashboardEntry> = rows.iter().flat_map(|(row, name)| entries(row, name, arch)).collect();
    serde_json::to_string_pretty(&entries)
}

/// Properties that distinguish rows of equal recipe and sizes, in the order in which they are appended.
const DISTINGUISHING_PROPERTIES: [fn(&PivotRow) -> String; 7] = [
    |row| row.case.workload.to_string(),
    |row| row.case.element.to_string(),
    |row| row.case.device.to_string(),
    |row| row.case.regime.to_string(),
    |row| row.family.name().to_owned(),
    |row| row.case.name.clone(),
    |row| row.case.shape_name.clone(),
];

/// Rows with unique names.
fn named_rows(records: &[Record]) -> Vec<(PivotRow<'_>, String)> {
    let rows = pivot::pivot_rows(records);
    let base = |row: &PivotRow| format!("{}-{}-{}-{}", row.case.variant(), row.m, row.k, row.n);
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    rows.iter().enumerate().for_each(|(at, row)| groups.entry(base(row)).or_default().push(at));
    let mut names: Vec<String> = rows.iter().map(base).collect();
    for group in groups.values().filter(|group| group.len() > 1) {
        for property in DISTINGUISHING_PROPERTIES {
            let values: Vec<String> = group.iter().map(|&at| property(&rows[at])).collect();
            if values.iter().any(|one| *one != values[0]) {
                group.iter().zip(values).for_each(|(&at, one)| names[at] += &format!("-{one}"));
            }
        }
        let mut counts: HashMap<String, usize> = HashMap::new();
        for &at in group {
            let count = counts.entry(names[at].clone()).or_default();
            *count += 1;
            if *count > 1 {
                names[at] += &format!("#{count}");
            }
        }
    }
    rows.into_iter().zip(names).collect()
}

fn entries<'a>(row: &PivotRow<'a>, name: &str, arch: &'a str) -> Vec<DashboardEntry<'a>> {
    let dtype = dtype_label(row.case.element);
    let mut metrics = arm_metrics(row.compiled, row.baseline_compiled, ["Fwd", &dtype]);
    if let (false, PivotArm(Some(Record { footprint: Footprint { peak_bytes: Some(bytes), .. }, .. }))) =
        (metrics.is_empty(), row.compiled)
    {
        metrics.push(DashboardMetric::new("Allocated Memory (MB)".into(), *bytes as f64 / 1e6, Some("MB")));
    }
    metrics.extend(arm_metrics(row.eager, row.baseline_eager, ["Eager Fwd", &dtype]));
    metrics.into_iter().map(|metric| DashboardEntry::new(row, name, arch, metric)).collect()
}

/// Metrics of an arm and its baseline; empty unless both were measured.
fn arm_metrics(arm: PivotArm, baseline: PivotArm, [pass, dtype]: [&str; 2]) -> Vec<DashboardMetric> {
    let figures = || Some((arm.speedup_over(baseline)?, baseline.milliseconds()?, arm.milliseconds()?));
    let Some((speedup, before, after)) = figures() else { return Vec::new() };
    vec![
        DashboardMetric::new(format!("{pass} Speedup (x)"), speedup, None),
        DashboardMetric::new(format!("{dtype} {pass} Time (ms)"), before, Some("ms")),
        DashboardMetric::new(format!("Quantized {pass} Time (ms)"), after, Some("ms")),
    ]
}

fn dtype_label(element: Element) -> String {
    match element {
        Element::Float(Dtype::Bf16) => "Bfloat16".into(),
        Element::Float(Dtype::F16) => "Float16".into(),
        Element::Float(Dtype::F32) => "Float32".into(),
        other => other.to_string().to_uppercase(),
    }
}

/// Entry of the list. The order of fields is the order of JSON keys.
#[derive(Serialize)]
struct DashboardEntry<'a> {
    benchmark: DashboardBenchmark<'a>,
    model: DashboardModel,
    metric: DashboardMetric,
    runners: [(); 0],
    dependencies: EmptyObject,
}

impl<'a> DashboardEntry<'a> {
    fn new(row: &PivotRow<'a>, name: &str, arch: &'a str, metric: DashboardMetric) -> DashboardEntry<'a> {
        let case = row.case;
        DashboardEntry {
            benchmark: DashboardBenchmark {
                name: "micro-benchmark api",
                mode: case.mode.name(),
                dtype: case.recipe.as_str(),
                extra_info: DashboardDevice {
                    device: case.device.kind(),
                    arch,
                    torch_compile_mode: case.compile_mode.as_deref().unwrap_or("default"),
                },
            },
            model: DashboardModel {
                name: name.to_owned(),
                r#type: "micro-benchmark custom layer",
                origins: ["torchao"],
            },
            metric,
            runners: [],
            dependencies: EmptyObject {},
        }
    }
}

#[derive(Serialize)]
struct DashboardBenchmark<'a> {
    name: &'static str,
    mode: &'a str,
    dtype: &'a str,
    extra_info: DashboardDevice<'a>,
}

#[derive(Serialize)]
struct DashboardDevice<'a> {
    device: DeviceKind,
    arch: &'a str,
    torch_compile_mode: &'a str,
}

#[derive(Serialize)]
struct DashboardModel {
    name: String,
    r#type: &'static str,
    origins: [&'static str; 1],
}

#[derive(Serialize)]
struct DashboardMetric {
    name: String,
    benchmark_values: [f64; 1],
    target_value: f64,
    extra_info: MetricUnit,
}

impl DashboardMetric {
    fn new(name: String, value: f64, unit: Option<&'static str>) -> DashboardMetric {
        DashboardMetric { name, benchmark_values: [value], target_value: 0.0, extra_info: MetricUnit { unit } }
    }
}

#[derive(Serialize)]
struct MetricUnit {
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
}

#[derive(Serialize)]
struct EmptyObject {}
