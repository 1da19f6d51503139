//! Files of accelerator-microbenchmarks version 1: a list `benchmarks`, each an operator with parameters and sweeps.

mod file;
mod patterns;
mod published;
mod sweep;

use super::resolve::{DEFAULT_SEED, overriding, settle};
use super::{ConfigError, Entry, NamedTask, Overrides, Resolved, ResolvedEntry, Source, Timing};
use crate::devices;
use calorimeter_recipes::Variant;
use calorimeter_shapes::Axes;
use calorimeter_sinks::record::Export;
use calorimeter_timing::Options;
use calorimeter_zoo::{Operator, Subject, Suite};
pub use published::{default_element, published};

use file::{Benchmark, File};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use sweep::Set;

/// More numbers than any machine holds; sizes above it would overflow the counts made from them.
const MAX_NUMBERS: u128 = 1 << 56;

/// Whether a text is such a file: it has the key `benchmarks`, where ours have `models`.
pub fn is_one(text: &str) -> bool {
    let keys = serde_yaml::from_str::<BTreeMap<String, IgnoredAny>>(text).unwrap_or_default();
    keys.contains_key("benchmarks") && !keys.contains_key("models") && !keys.contains_key("model_params")
}

/// Adds what a file asks for.
pub fn resolve(source: &Source, overrides: &Overrides, resolved: &mut Resolved) -> Result<(), ConfigError> {
    let file: File =
        serde_yaml::from_str(&source.text).map_err(|error| ConfigError::yaml(source.path.clone(), &error))?;
    let invalid = |message: String| ConfigError::invalid(source.path.clone(), message);
    if file.benchmarks.is_empty() {
        return Err(invalid("benchmarks is empty: nothing to run".into()));
    }
    let first = resolved.entries.iter().filter_map(|entry| Some(entry.export.as_ref()?.entry + 1)).max().unwrap_or(0);
    for (index, benchmark) in file.benchmarks.iter().enumerate() {
        let export = Export {
            entry: first + index as u32,
            csv_path: benchmark.csv_path.clone(),
            metrics_dir: benchmark.metrics_dir.clone(),
        };
        // An entry of ours has one type of inputs and one least number of windows.
        for sets in benchmark.sets.chunk_by(|a, b| (a.element, a.num_runs) == (b.element, b.num_runs)) {
            let entry = entry(benchmark, sets, overrides);
            let entry = entry.map_err(|message| invalid(format!("benchmarks[{index}]: {message}")))?;
            resolved.entries.push(ResolvedEntry { export: Some(export.clone()), ..entry });
        }
    }
    resolved.notes.extend(notes(&file).into_iter().map(|note| format!("{}: {note}", source.path.display())));
    Ok(())
}

/// Has the results of each entry written into one folder, as a file would with `csv_path` and `xlml_metrics_dir`.
pub fn export(entries: &mut [ResolvedEntry], folder: &str) {
    for (index, entry) in entries.iter_mut().enumerate() {
        let folder = Some(folder.to_owned());
        entry.export = Some(Export { entry: index as u32, csv_path: folder.clone(), metrics_dir: folder });
    }
}

fn entry(benchmark: &Benchmark, sets: &[Set], overrides: &Overrides) -> Result<ResolvedEntry, String> {
    let (operator, default) = (benchmark.operator, Options::default());
    let runs = sets[0].num_runs.or(benchmark.num_runs).unwrap_or(0).min(u64::from(u32::MAX)) as u32;
    let timing = Timing {
        min_windows: Some(runs.max(default.min_windows)),
        max_windows: Some(runs.max(default.max_windows)),
        ..Timing::default()
    };
    let entry = Entry {
        timing: Some(timing),
        enable_profiler: benchmark.trace_dir.is_some().then_some(true),
        ..Entry::default()
    };
    let entry = entry.overwrite(&overriding(overrides));
    let subject = Subject::Operator(operator);
    let element = sets[0].element.unwrap_or_else(|| default_element(operator));
    let seed = entry.seed.unwrap_or(DEFAULT_SEED);
    let task = |set: &Set| {
        let (types, scale) = ((element, set.output), overrides.scale_shapes);
        NamedTask::new("custom".into(), subject, &axes(operator, set)?, types, seed, scale)
    };
    let tasks = sets.iter().map(task).collect::<Result<Vec<NamedTask>, String>>()?;
    settle(entry, subject, tasks, vec![Variant::BASELINE], false)
}

/// The parameters that are axes of the operator.
fn axes(operator: Operator, set: &Set) -> Result<Axes, String> {
    let known = operator.info().axes;
    if let Some((name, value)) = set.others.iter().find(|(name, _)| known.contains(&name.as_str())) {
        return Err(format!("{name} is {value:?}, and no whole number from 1"));
    }
    let mut axes: Vec<(String, u64)> =
        set.numbers.iter().filter(|(name, _)| known.contains(&name.as_str())).cloned().collect();
    // There it is a mesh that says between how many; here it is between all.
    if known.contains(&"devices") && !axes.iter().any(|(name, _)| name == "devices") {
        axes.push(("devices".into(), devices::cuda_gpus().max(2)));
    }
    let axes = Axes::new(axes).map_err(|error| error.to_string())?;
    let numbers = axes.iter().fold(1u128, |product, (_, size)| product.saturating_mul(u128::from(size)));
    if numbers > MAX_NUMBERS {
        return Err(format!("{operator} at {axes} is more than any machine computes; make it smaller"));
    }
    Ok(axes)
}

/// What of a file has no effect, each key once.
fn notes(file: &File) -> Vec<String> {
    let ignored = file.benchmarks.iter().flat_map(|benchmark| benchmark.ignored.clone());
    let unknown = file.benchmarks.iter().flat_map(|benchmark| benchmark.unknown.clone());
    let computed = file.benchmarks.iter().filter(|benchmark| benchmark.operator.info().suite != Suite::Elsewhere);
    let parameters = computed.flat_map(|Benchmark { operator, sets, .. }| {
        let names = sets
            .iter()
            .flat_map(|set| set.numbers.iter().map(|(name, _)| name).chain(set.others.iter().map(|(name, _)| name)));
        let known = operator.info().axes;
        names.filter(|name| !known.contains(&name.as_str())).map(move |name| format!("{name} of {operator}"))
    });
    let lists = [
        ("keys without effect here", each_once(ignored)),
        ("unknown keys, passed over", each_once(file.unknown.iter().cloned().chain(unknown))),
        ("parameters without effect here", each_once(parameters)),
    ];
    let said = lists.into_iter().filter(|(_, keys)| !keys.is_empty());
    said.map(|(what, keys)| format!("{what}: {}", keys.join(", "))).collect()
}

fn each_once(keys: impl Iterator<Item = String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for key in keys {
        if !once.contains(&key) {
            once.push(key);
        }
    }
    once
}
