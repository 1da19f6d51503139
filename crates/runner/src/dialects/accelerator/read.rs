//! From such a file to entries.

use super::file::{Benchmark, File};
use super::notes::notes;
use super::published::default_element;
use super::sweep::Set;
use crate::devices::Devices;
use crate::dialects::{Document, Source, yaml};
use crate::entries::{ConfigError, Entry, Origin, Size, Timing};
use calorimeter_case::{Axes, Export};
use calorimeter_timing::Options;
use calorimeter_zoo::{Operator, Subject};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// More numbers than any machine holds; sizes above it would overflow the counts made from them.
const MAX_NUMBERS: u128 = 1 << 56;

/// Whether a text is such a file: it has the key `benchmarks`, where ours have `models`.
pub fn is_one(text: &str) -> bool {
    let keys = serde_yaml::from_str::<BTreeMap<String, IgnoredAny>>(text).unwrap_or_default();
    keys.contains_key("benchmarks") && !keys.contains_key("models") && !keys.contains_key("model_params")
}

/// What a file asks for.
pub fn read(source: &Source, devices: &Devices) -> Result<Document, ConfigError> {
    let file: File = yaml::parse(&source.path, &source.text)?;
    if file.benchmarks.is_empty() {
        return Err(ConfigError::invalid(source.path.clone(), "benchmarks is empty: nothing to run"));
    }
    let mut entries = Vec::with_capacity(file.benchmarks.len());
    for (index, benchmark) in file.benchmarks.iter().enumerate() {
        let origin = Origin::listed(&source.path, "benchmarks", index);
        let export = Export {
            entry: index as u32,
            csv_path: benchmark.csv_path.clone(),
            metrics_dir: benchmark.metrics_dir.clone(),
        };
        // An entry has one type of inputs and one least number of windows.
        for sets in benchmark.sets.chunk_by(|a, b| (a.element, a.num_runs) == (b.element, b.num_runs)) {
            let entry = entry(benchmark, sets, origin.clone(), devices).map_err(|message| origin.invalid(message))?;
            entries.push(Entry { export: Some(export.clone()), ..entry });
        }
    }
    let notes = notes(&file).into_iter().map(|note| format!("{}: {note}", source.path.display())).collect();
    Ok(Document { entries, output_dir: None, notes })
}

fn entry(benchmark: &Benchmark, sets: &[Set], origin: Origin, devices: &Devices) -> Result<Entry, String> {
    let (operator, default) = (benchmark.operator, Options::default());
    let runs = sets[0].num_runs.or(benchmark.num_runs).unwrap_or(0).min(u64::from(u32::MAX)) as u32;
    let size = |set: &Set| Ok(Size { output: set.output, ..Size::custom(axes(operator, set, devices)?) });
    let sizes = sets.iter().map(size).collect::<Result<Vec<Size>, String>>()?;
    Ok(Entry {
        element: sets[0].element.unwrap_or_else(|| default_element(operator)),
        timing: Timing {
            min_windows: Some(runs.max(default.min_windows)),
            max_windows: Some(runs.max(default.max_windows)),
            ..Timing::default()
        },
        profiler: benchmark.trace_dir.is_some(),
        ..Entry::new(origin, Subject::Operator(operator), sizes)
    })
}

/// The parameters that are axes of the operator.
fn axes(operator: Operator, set: &Set, devices: &Devices) -> Result<Axes, String> {
    let known = operator.info().axes;
    if let Some((name, value)) = set.others.iter().find(|(name, _)| known.contains(&name.as_str())) {
        return Err(format!("{name} is {value:?}, and no whole number from 1"));
    }
    let mut axes: Vec<(String, u64)> =
        set.numbers.iter().filter(|(name, _)| known.contains(&name.as_str())).cloned().collect();
    // There it is a mesh that says between how many; here it is between all.
    if known.contains(&"devices") && !axes.iter().any(|(name, _)| name == "devices") {
        axes.push(("devices".into(), devices.cuda_gpus().max(2)));
    }
    let axes = Axes::new(axes).map_err(|error| error.to_string())?;
    let numbers = axes.iter().fold(1u128, |product, (_, size)| product.saturating_mul(u128::from(size)));
    if numbers > MAX_NUMBERS {
        return Err(format!("{operator} at {axes} is more than any machine computes; make it smaller"));
    }
    Ok(axes)
}
