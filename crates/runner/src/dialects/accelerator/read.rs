//! Conversion of accelerator-microbenchmarks files to entries.

use super::conversion::{BENCHMARKS, axes, timing_for_runs};
use super::file::{AcceleratorBenchmark, AcceleratorFile};
use super::notes::notes;
use super::published::default_element;
use super::sweep::ParameterSet;
use super::unsupported::register;
use super::v2;
use crate::dialects::yaml::Step;
use crate::dialects::{ConfigSource, Document, yaml};
use crate::entries::{ConfigError, Entry, MAX_ENTRIES, Origin, Size, Timing};
use calorimeter_case::Export;
use calorimeter_probe::devices::Devices;
use calorimeter_recipes::Element;
use calorimeter_shapes::MAX_SHAPES;
use calorimeter_zoo::{Operator, Subject};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// True if a text has the key `benchmarks` and none of our keys for models.
pub(crate) fn is_accelerator_file(text: &str) -> bool {
    let keys =
        serde_yaml::from_str::<BTreeMap<String, IgnoredAny>>(yaml::without_byte_order_mark(text)).unwrap_or_default();
    keys.contains_key("benchmarks") && !keys.contains_key("models") && !keys.contains_key("model_params")
}

/// Converts a file of either version to entries.
pub(crate) fn read(source: &ConfigSource, devices: &Devices) -> Result<Document, ConfigError> {
    match v2::is_version_2(yaml::without_byte_order_mark(&source.text)) {
        true => v2::read(source, devices),
        false => read_version_1(source, devices),
    }
}

fn read_version_1(source: &ConfigSource, devices: &Devices) -> Result<Document, ConfigError> {
    register();
    let file: AcceleratorFile = yaml::parse(source)?;
    if file.benchmarks.is_empty() {
        return Err(yaml::invalid_at(source, &[BENCHMARKS], "nothing to run: benchmarks is empty"));
    }
    if file.benchmarks.len() > MAX_ENTRIES {
        let message = format!("{} benchmarks, more than {MAX_ENTRIES}; split the file", file.benchmarks.len());
        return Err(yaml::invalid_at(source, &[BENCHMARKS], message));
    }
    let sets = file.benchmarks.iter().fold(0u64, |sets, benchmark| sets.saturating_add(benchmark.count()));
    if sets > MAX_SHAPES {
        let message = format!("{sets} parameter sets, more than {MAX_SHAPES}; split the file");
        return Err(yaml::invalid_at(source, &[BENCHMARKS], message));
    }
    let mut entries = Vec::with_capacity(file.benchmarks.len());
    for (index, benchmark) in file.benchmarks.iter().enumerate() {
        let origin = Origin::in_list(&source.path, "benchmarks", index);
        let export = Export {
            entry: index as u32,
            csv_path: benchmark.csv_path.clone(),
            metrics_dir: benchmark.metrics_dir.clone(),
            benchmark: None,
        };
        let invalid = |message: String| {
            let path = [BENCHMARKS, Step::Item(index)];
            yaml::invalid_at(source, &path, format!("benchmarks[{index}]: {message}"))
        };
        let parts = entry_parts(benchmark, devices).map_err(invalid)?;
        if entries.len() + parts.len() > MAX_ENTRIES {
            let message = format!("dtype or num_runs change more than {MAX_ENTRIES} times; list their keys first");
            return Err(invalid(message));
        }
        for ((element, runs), sizes) in parts {
            let timing = timing_for_runs(runs.or(benchmark.num_runs).unwrap_or(0)).map_err(invalid)?;
            let entry = entry(benchmark, element, timing, sizes, origin.clone());
            entries.push(Entry { export: Some(export.clone()), ..entry });
        }
    }
    let notes = notes(&file).into_iter().map(|note| format!("{}: {note}", source.path.display())).collect();
    Ok(Document { entries, output_dir: None, notes })
}

/// Common properties of the sets of an entry: input dtype and number of runs.
type ElementAndRuns = (Option<Element>, Option<u64>);

/// Groups consecutive parameter sets with equal dtype and number of runs; each group becomes an entry.
fn entry_parts(
    benchmark: &AcceleratorBenchmark,
    devices: &Devices,
) -> Result<Vec<(ElementAndRuns, Vec<Size>)>, String> {
    let mut parts: Vec<(ElementAndRuns, Vec<Size>)> = Vec::new();
    for set in benchmark.sets() {
        let set = set?;
        let common = (set.element, set.num_runs);
        let output = set.output;
        let size = Size { output, ..Size::custom(axes(benchmark.operator, sizes(benchmark.operator, set)?, devices)?) };
        match parts.last_mut().filter(|(known, _)| *known == common) {
            Some((_, sizes)) => sizes.push(size),
            None => parts.push((common, vec![size])),
        }
    }
    Ok(parts)
}

fn entry(
    benchmark: &AcceleratorBenchmark,
    element: Option<Element>,
    timing: Timing,
    sizes: Vec<Size>,
    origin: Origin,
) -> Entry {
    let operator = benchmark.operator;
    Entry {
        element: element.unwrap_or_else(|| default_element(operator)),
        timing,
        profiler: benchmark.trace_dir.is_some(),
        ..Entry::new(origin, Subject::Operator(operator), sizes)
    }
}

/// Selects the parameters that are axes of the operator.
fn sizes(operator: Operator, set: ParameterSet) -> Result<Vec<(String, u64)>, String> {
    let known = operator.info().axes;
    match set.texts.iter().find(|(name, _)| known.contains(&name.as_str())) {
        Some((name, value)) => Err(format!("invalid {name} {value:?}: expected an integer from 1")),
        None => Ok(set.integers.into_iter().filter(|(name, _)| known.contains(&name.as_str())).collect()),
    }
}
