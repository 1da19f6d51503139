//! Conversion of version 2 files to entries, one per case.

use super::benchmarks::{BENCHMARKS, BenchmarkDefinition, LoweredCase, SizeParameter};
use super::file::{HardwarePeaks, Version2File};
use super::parameters::{CaseParameters, GENERAL, IGNORED, ParameterDefault};
use super::rows::{ShapeRow, locate, read_rows};
use crate::dialects::accelerator::conversion::{BENCHMARKS as LIST, axes, timing_for_runs};
use crate::dialects::accelerator::sweep::ParameterValue;
use crate::dialects::accelerator::unsupported::register;
use crate::dialects::yaml::{self, Step};
use crate::dialects::{ConfigSource, Document};
use crate::entries::{ConfigError, Entry, HumanDuration, MAX_ENTRIES, Origin, Size, Timing};
use calorimeter_case::{Export, UnknownName};
use calorimeter_probe::devices::Devices;
use calorimeter_sinks::accelerator::BenchmarkRequest;
use calorimeter_timing::Options;
use calorimeter_zoo::{Operator, Subject};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// True if a file has one of the keys that only version 2 has: `global`, `hardware`, or `name` of a benchmark.
pub(crate) fn is_version_2(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Keys {
        benchmarks: Vec<BTreeMap<String, IgnoredAny>>,
    }
    let top = serde_yaml::from_str::<BTreeMap<String, IgnoredAny>>(text).unwrap_or_default();
    let has_name = |keys: Keys| keys.benchmarks.iter().any(|benchmark| benchmark.contains_key("name"));
    ["global", "hardware"].iter().any(|key| top.contains_key(*key)) || serde_yaml::from_str(text).is_ok_and(has_name)
}

/// Converts a file to entries.
pub(crate) fn read(source: &ConfigSource, devices: &Devices) -> Result<Document, ConfigError> {
    register();
    let file: Version2File = yaml::parse(source)?;
    if file.benchmarks.is_empty() {
        return Err(yaml::invalid_at(source, &[LIST], "nothing to run: benchmarks is empty"));
    }
    let global = file.global.as_ref().map_or(&[][..], |global| &global.0);
    let mut document = Document::default();
    for (index, benchmark) in file.benchmarks.iter().enumerate() {
        let place = [LIST, Step::Item(index)];
        let (path, rows) = match &benchmark.csv_shapes {
            None => (PathBuf::new(), vec![ShapeRow::default()]),
            Some(csv) => {
                let path = locate(csv, &source.path).map_err(|message| {
                    let place = [LIST, Step::Item(index), Step::Key(&["csv_shapes"])];
                    yaml::invalid_at(source, &place, format!("benchmarks[{index}].csv_shapes: {message}"))
                })?;
                let rows = read_rows(&path)?;
                (path, rows)
            }
        };
        let cases = benchmark.sweep.count().saturating_mul(rows.len() as u64);
        if cases.saturating_add(document.entries.len() as u64) > MAX_ENTRIES as u64 {
            let message = format!("benchmarks[{index}]: more than {MAX_ENTRIES} cases up to here; split the file");
            return Err(yaml::invalid_at(source, &place, message));
        }
        for row in &rows {
            for swept in benchmark.sweep.iter() {
                let layers = Layers([
                    (LayerKind::Global, global),
                    (LayerKind::Model, &benchmark.model),
                    (LayerKind::Benchmark, &benchmark.parameters),
                    (LayerKind::Row, &row.parameters),
                    (LayerKind::Sweep, &swept),
                ]);
                let entry = layers.resolve(benchmark.definition).and_then(|parameters| {
                    let entry = entry(benchmark.definition, &parameters, file.hardware.as_ref(), devices);
                    let mut entry = entry.map_err(|message| LayerError { key: None, message })?;
                    entry.origin = Origin::in_list(&source.path, "benchmarks", index);
                    entry.name = Some(layers.case_name(benchmark.definition, &parameters));
                    entry.export.iter_mut().for_each(|export| export.entry = index as u32);
                    Ok(entry)
                });
                document.entries.push(entry.map_err(|error| error.into_config_error(source, index, &path, row.line))?);
            }
        }
    }
    document.notes = notes(&file).map(|note| format!("{}: {note}", source.path.display())).into_iter().collect();
    Ok(document)
}

/// Values of a case by origin, in ascending precedence.
struct Layers<'a>([(LayerKind, &'a [(String, ParameterValue)]); 5]);

/// Origin of a value.
#[derive(Clone, Copy, PartialEq)]
enum LayerKind {
    Global,
    Model,
    Benchmark,
    Row,
    Sweep,
}

/// Invalid value of a key. Without a key, the combination of values is invalid.
struct LayerError {
    key: Option<(LayerKind, String)>,
    message: String,
}

impl Layers<'_> {
    /// Values with their origin, in ascending precedence.
    fn values(&self) -> impl Iterator<Item = (LayerKind, &str, &ParameterValue)> {
        self.0.iter().flat_map(|(kind, pairs)| pairs.iter().map(|(name, value)| (*kind, name.as_str(), value)))
    }

    /// Parameters of the case.
    fn resolve(&self, definition: &BenchmarkDefinition) -> Result<CaseParameters, LayerError> {
        let own = definition.parameters;
        let mut parameters = CaseParameters::defaults(own);
        for (kind, name, value) in self.values() {
            let known = GENERAL.iter().chain(own).find(|(known, _)| *known == name);
            let elsewhere = kind == LayerKind::Model
                || kind == LayerKind::Global
                    && BENCHMARKS.iter().flat_map(|other| other.parameters).any(|(known, _)| *known == name);
            let read = match known {
                Some((_, default)) => default.read(name, value),
                None if elsewhere => continue,
                None => {
                    let names = own.iter().chain(GENERAL).map(|(known, _)| *known);
                    Err(UnknownName::new("parameter", name, names).to_string())
                }
            };
            let value = read.map_err(|message| LayerError { key: Some((kind, name.to_owned())), message })?;
            parameters.set(name, value);
        }
        Ok(parameters)
    }

    /// Name of the benchmark, with the parameters from the file that are not whole numbers.
    fn case_name(&self, definition: &BenchmarkDefinition, parameters: &CaseParameters) -> String {
        let written = definition.parameters.iter().filter(|(name, default)| {
            !matches!(default, ParameterDefault::Integer(_) | ParameterDefault::Text(_))
                && self.values().any(|(_, written, _)| written == *name)
        });
        let words = written.map(|(name, _)| format!(" {name}={}", parameters.display(name)));
        [definition.name.to_owned()].into_iter().chain(words).collect()
    }
}

impl LayerError {
    /// Adds the position: in the file, or in the CSV file of the benchmark.
    fn into_config_error(self, source: &ConfigSource, index: usize, csv: &Path, line: u64) -> ConfigError {
        let Self { key, message } = self;
        let [list, item] = [LIST, Step::Item(index)];
        let Some((kind, name)) = key else {
            return yaml::invalid_at(source, &[list, item], format!("benchmarks[{index}]: {message}"));
        };
        let names = [name.as_str()];
        let name = Step::Key(&names);
        let (place, at): (&[Step], String) = match kind {
            LayerKind::Row => {
                return ConfigError::Invalid { path: csv.to_owned(), place: format!(":{line}"), message };
            }
            LayerKind::Global => (&[Step::Key(&["global"]), name], "global".into()),
            LayerKind::Sweep => (&[list, item, Step::Key(&["sweep"]), name], format!("benchmarks[{index}].sweep")),
            LayerKind::Benchmark | LayerKind::Model => (&[list, item, name], format!("benchmarks[{index}]")),
        };
        yaml::invalid_at(source, place, format!("{at}: {message}"))
    }
}

/// Entry of a case, without its origin and name.
fn entry(
    definition: &BenchmarkDefinition,
    parameters: &CaseParameters,
    hardware: Option<&HardwarePeaks>,
    devices: &Devices,
) -> Result<Entry, String> {
    let LoweredCase { operator, element, output, sizes, devices: device_count } = (definition.lower)(parameters);
    let operator: Operator = operator.parse().map_err(|error| format!("{error}"))?;
    let axis =
        |size: &SizeParameter| (size.axis.to_owned(), parameters.integer(size.parameter).saturating_mul(size.factor));
    let mut integers: Vec<(String, u64)> = sizes.iter().map(axis).collect();
    integers.extend(device_count.map(|count| ("devices".to_owned(), count)));
    let size = Size { output, ..Size::custom(axes(operator, integers, devices)?) };
    let min_time = parameters.number("min_duration_s").to_string().parse::<HumanDuration>();
    let min_time = min_time.map_err(|error| format!("min_duration_s: {error}"))?;
    let mut timing = timing_for_runs(parameters.integer("num_runs"))?;
    if !min_time.0.is_zero() {
        let max_time = HumanDuration(min_time.0.max(Options::default().max_time));
        timing = Timing { min_time: Some(min_time), max_time: Some(max_time), ..timing };
    }
    let peaks = hardware.map_or_else(|| Ok(json!({})), serde_json::to_value).map_err(|error| error.to_string())?;
    let mut params: Vec<_> = parameters.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    // In results, the peaks precede the dtype, which is the last general parameter.
    params.insert(GENERAL.len() - 1, ("hardware_stats".to_owned(), peaks));
    let request = BenchmarkRequest {
        class: definition.class.to_owned(),
        params,
        sizes: sizes.into_iter().map(|size| (size.parameter.to_owned(), size.axis.to_owned(), size.factor)).collect(),
    };
    Ok(Entry {
        element,
        timing,
        profiler: parameters.flag("xprof_timing"),
        seed: definition.parameters.iter().any(|(name, _)| *name == "seed").then(|| parameters.integer("seed")),
        export: Some(Export { benchmark: Some(request.to_string()), ..Export::default() }),
        ..Entry::new(Origin::command(""), Subject::Operator(operator), vec![size])
    })
}

/// Lists the parameters without effect.
fn notes(file: &Version2File) -> Option<String> {
    let global = file.global.iter().flat_map(|global| &global.0).map(|(name, _)| name);
    let own = file.benchmarks.iter().flat_map(|benchmark| &benchmark.parameters).map(|(name, _)| name);
    let swept = file.benchmarks.iter().flat_map(|benchmark| benchmark.sweep.names());
    let written: Vec<&String> = global.chain(own).chain(swept).collect();
    let ignored: Vec<&str> = IGNORED.into_iter().filter(|name| written.iter().any(|one| *one == name)).collect();
    (!ignored.is_empty()).then(|| format!("ignored parameters: {}", ignored.join(", ")))
}
