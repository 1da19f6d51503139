//! Conversion of accelerator-microbenchmarks files to entries.

use super::file::{AcceleratorBenchmark, AcceleratorFile};
use super::notes::notes;
use super::published::default_element;
use super::splash_attention::register;
use super::sweep::ParameterSet;
use crate::dialects::yaml::Step;
use crate::dialects::{ConfigSource, Document, yaml};
use crate::entries::{ConfigError, Entry, MAX_ENTRIES, MAX_WINDOWS, Origin, Size, Timing};
use calorimeter_case::{Axes, Export};
use calorimeter_probe::devices::Devices;
use calorimeter_recipes::Element;
use calorimeter_shapes::MAX_SHAPES;
use calorimeter_timing::Options;
use calorimeter_zoo::{Operator, Subject};
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// Maximum elements of a case; larger sizes would overflow derived counts.
const MAX_ELEMENTS: u128 = 1 << 56;

const BENCHMARKS: Step<'static> = Step::Key(&["benchmarks"]);

/// True if a text has the key `benchmarks` and none of our keys for models.
pub(crate) fn is_accelerator_file(text: &str) -> bool {
    let keys =
        serde_yaml::from_str::<BTreeMap<String, IgnoredAny>>(yaml::without_byte_order_mark(text)).unwrap_or_default();
    keys.contains_key("benchmarks") && !keys.contains_key("models") && !keys.contains_key("model_params")
}

/// Converts a file to entries.
pub(crate) fn read(source: &ConfigSource, devices: &Devices) -> Result<Document, ConfigError> {
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
            let runs = windows_for_runs(runs.or(benchmark.num_runs).unwrap_or(0)).map_err(invalid)?;
            let entry = entry(benchmark, (element, runs), sizes, origin.clone());
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
        let size = Size { output: set.output, ..Size::custom(axes(benchmark.operator, set, devices)?) };
        match parts.last_mut().filter(|(known, _)| *known == common) {
            Some((_, sizes)) => sizes.push(size),
            None => parts.push((common, vec![size])),
        }
    }
    Ok(parts)
}

/// Number of windows that corresponds to a number of runs.
fn windows_for_runs(runs: u64) -> Result<u32, String> {
    let windows = u32::try_from(runs).ok().filter(|windows| *windows <= MAX_WINDOWS);
    windows.ok_or_else(|| format!("invalid num_runs {runs}: expected at most {MAX_WINDOWS}"))
}

fn entry(
    benchmark: &AcceleratorBenchmark,
    (element, runs): (Option<Element>, u32),
    sizes: Vec<Size>,
    origin: Origin,
) -> Entry {
    let (operator, default) = (benchmark.operator, Options::default());
    Entry {
        element: element.unwrap_or_else(|| default_element(operator)),
        timing: Timing {
            min_windows: Some(runs.max(default.min_windows)),
            max_windows: Some(runs.max(default.max_windows)),
            ..Timing::default()
        },
        profiler: benchmark.trace_dir.is_some(),
        ..Entry::new(origin, Subject::Operator(operator), sizes)
    }
}

/// Selects the parameters that are axes of the operator.
fn axes(operator: Operator, set: ParameterSet, devices: &Devices) -> Result<Axes, String> {
    let known = operator.info().axes;
    if let Some((name, value)) = set.texts.iter().find(|(name, _)| known.contains(&name.as_str())) {
        return Err(format!("invalid {name} {value:?}: expected an integer from 1"));
    }
    let mut axes: Vec<(String, u64)> =
        set.integers.into_iter().filter(|(name, _)| known.contains(&name.as_str())).collect();
    // The peer determines the number of devices by a mesh; here all GPUs take part.
    if known.contains(&"devices") && !axes.iter().any(|(name, _)| name == "devices") {
        axes.push(("devices".into(), devices.cuda_count().max(2)));
    }
    let axes = Axes::new(axes).map_err(|error| error.to_string())?;
    let elements = axes.iter().fold(1u128, |product, (_, size)| product.saturating_mul(u128::from(size)));
    if elements > MAX_ELEMENTS {
        return Err(format!("{operator} at {axes} is too large; expected at most 2^56 elements"));
    }
    Ok(axes)
}
