//! Conversion of our own files to entries.

use super::axes::AxisValues;
use super::file::{BenchmarkMode, File, ModelEntry};
use super::{programs, training};
use crate::dialects::names::ModelName;
use crate::dialects::yaml::Step;
use crate::dialects::{ConfigSource, Document, yaml};
use crate::entries::{CompileMode, ConfigError, Entry, MAX_ENTRIES, Origin, Size};
use calorimeter_case::{Axes, Name};
use calorimeter_recipes::{Dtype, Element, Sparsity};
use calorimeter_shapes::{Grid, MAX_SHAPES, Shape, ShapeEntry, ShapeError};
use calorimeter_zoo::operators::presets::Preset;
use calorimeter_zoo::{Subject, ZooError};
use std::collections::HashSet;
use std::hash::Hash;
use std::path::Path;

/// Converts a file to entries.
pub(crate) fn read(source: &ConfigSource) -> Result<Document, ConfigError> {
    let mut file = deduplicate_lists(yaml::parse(source)?);
    let invalid = |message: String| yaml::invalid_at(source, &[], message);
    if file.models.len() > MAX_ENTRIES {
        let message = format!("{} models, more than {MAX_ENTRIES}; split the file", file.models.len());
        return Err(yaml::invalid_at(source, &[MODELS], message));
    }
    if file.models.is_empty() {
        let message = "nothing to run: models (or model_params) is missing or empty";
        return Err(yaml::invalid_at(source, &[MODELS], message));
    }
    let operator = |entry: &ModelEntry| {
        entry.foreign.is_some() || matches!(entry.model.or(file.model), Some(ModelName(Subject::Operator(_))))
    };
    if !file.models.iter().all(operator) && file.recipes.is_empty() && file.sparsities.iter().all(Option::is_none) {
        let message =
            "recipes (or quantization_config_recipe_names) is missing or empty; expected e.g. [baseline, int8wo]";
        return Err(invalid(message.into()));
    }
    let notes = if file.mode == BenchmarkMode::Training {
        let notes = training::notes(&file).map_err(invalid)?;
        file.recipes = training::recipes(&file).map_err(invalid)?;
        notes
    } else {
        Vec::new()
    };
    let copied = copied_bytes(&file);
    if copied > MAX_COPIED_BYTES {
        let (models, max) = (file.models.len(), MAX_COPIED_BYTES >> 20);
        let message = format!(
            "top-level keys copied to {models} models need {} MiB, more than {max}; split the file",
            copied >> 20
        );
        return Err(invalid(message));
    }
    let mut entries = Vec::with_capacity(file.models.len());
    let mut remaining = MAX_SHAPES;
    for (index, model) in file.models.iter().enumerate() {
        let origin = Origin::in_list(&source.path, "models", index);
        let invalid = |error: ModelError| error.with_position(source, index);
        if model.foreign.is_some() {
            check_foreign_keys(model).map_err(|message| invalid(message.into()))?;
        }
        let entry = entry(&file, file.defaults().overwrite(model), origin, remaining).map_err(invalid)?;
        remaining = remaining.saturating_sub(entry.sizes.len() as u64);
        match file.mode {
            BenchmarkMode::Inference => entries.push(entry),
            BenchmarkMode::Training => entries.extend(
                training::passes(entry, file.optimizer.unwrap_or_default())
                    .map_err(|message| invalid(message.into()))?,
            ),
        }
    }
    Ok(Document { entries, output_dir: file.output_dir.map(Into::into), notes })
}

const MODELS: Step<'static> = Step::Key(&["models", "model_params"]);
const SHAPES: Step<'static> = Step::Key(&["shapes", "matrix_shapes"]);

/// Error in a model, or in one of its shapes.
struct ModelError {
    shape: Option<usize>,
    message: String,
}

impl From<String> for ModelError {
    fn from(message: String) -> Self {
        Self { shape: None, message }
    }
}

impl ModelError {
    /// Adds the position of the model or shape.
    fn with_position(self, source: &ConfigSource, model: usize) -> ConfigError {
        let Self { shape, message } = self;
        let model_path = [MODELS, Step::Item(model)];
        match shape {
            None => yaml::invalid_at(source, &model_path, format!("models[{model}]: {message}")),
            Some(shape) => {
                let path = [MODELS, Step::Item(model), SHAPES, Step::Item(shape)];
                yaml::invalid_at(source, &path, format!("models[{model}].shapes[{shape}]: {message}"))
            }
        }
    }
}

/// Removes repeated recipes, sparsities, implementations and regimes from the top of a file.
fn deduplicate_lists(mut file: File) -> File {
    deduplicate(&mut file.recipes);
    deduplicate(&mut file.sparsities);
    file.implementations.as_mut().map(deduplicate);
    file.regimes.as_mut().map(deduplicate);
    file
}

fn deduplicate<T: Clone + Eq + Hash>(list: &mut Vec<T>) {
    let mut seen = HashSet::with_capacity(list.len());
    list.retain(|one| seen.insert(one.clone()));
}

/// Maximum total size of the top-level keys copied to models, in bytes of their serialized form.
const MAX_COPIED_BYTES: usize = 64 << 20;

/// Total size of the top-level keys copied to models.
fn copied_bytes(file: &File) -> usize {
    let top = serde_json::to_vec(&(&file.recipes, &file.sparsities, file.defaults()));
    top.map_or(0, |top| top.len()).saturating_mul(file.models.len())
}

fn entry(file: &File, model: ModelEntry, origin: Origin, max_sizes: u64) -> Result<Entry, ModelError> {
    let timing = model.timing.unwrap_or_default();
    if let Some(programs) = &model.foreign {
        let entry = programs::entry(programs, origin.clone(), sizes(&model, &[], &origin.path, max_sizes)?)?;
        return Ok(Entry {
            name: model.name,
            device: model.device.or(entry.device),
            regimes: model.regimes,
            profiler: model.enable_profiler.unwrap_or(false),
            memory_profiler: model.enable_memory_profiler.unwrap_or(false),
            percentiles: model.percentiles.unwrap_or(false),
            peak_memory: model.peak_memory.unwrap_or(false),
            timing,
            timeout: model.timeout,
            seed: model.seed,
            mock: model.mock.unwrap_or_default(),
            ..entry
        });
    }
    let subject = match model.model {
        Some(ModelName(subject)) => subject,
        None => Subject::Model("linear".parse().map_err(|error: ZooError| error.to_string())?),
    };
    let axes = match subject {
        Subject::Operator(operator) => operator.info().axes,
        _ => &MATMUL_AXES,
    };
    let sizes = sizes(&model, axes, &origin.path, max_sizes)?;
    let sparsities: Vec<Sparsity> = file.sparsities.iter().flatten().copied().collect();
    Ok(Entry {
        name: model.name,
        element: model.dtype.unwrap_or(Element::Float(Dtype::Bf16)),
        recipes: file.recipes.clone(),
        sparsities,
        // torchao versions with this key added the baseline implicitly.
        with_baseline: model.use_torch_compile.is_some(),
        device: model.device,
        implementations: model.implementations,
        compile_mode: match (model.torch_compile_mode, model.use_torch_compile) {
            (_, Some(false)) => Some(CompileMode::Off),
            (mode, _) => mode,
        },
        regimes: model.regimes,
        profiler: model.enable_profiler.unwrap_or(false),
        memory_profiler: model.enable_memory_profiler.unwrap_or(false),
        percentiles: model.percentiles.unwrap_or(false),
        peak_memory: model.peak_memory.unwrap_or(false),
        timing,
        timeout: model.timeout,
        seed: model.seed,
        mock: model.mock.unwrap_or_default(),
        ..Entry::new(origin, subject, sizes)
    })
}

const MATMUL_AXES: [&str; 3] = ["m", "k", "n"];

/// Sizes of a model or operator with the given axes, from `shapes`, `axes` or `preset`. Counts them before expanding.
fn sizes(model: &ModelEntry, names: &[&'static str], path: &Path, max_sizes: u64) -> Result<Vec<Size>, ModelError> {
    let given =
        [model.shapes.as_ref().is_some_and(|shapes| !shapes.is_empty()), model.axes.is_some(), model.preset.is_some()];
    if given.into_iter().filter(|given| *given).count() > 1 {
        return Err("shapes, axes and preset are mutually exclusive; keep one".to_owned().into());
    }
    let mut sizes = Vec::new();
    let check_count = |known: usize, more: u64| match (known as u64).saturating_add(more) {
        count if count > max_sizes => Err(format!("more than {MAX_SHAPES} sizes up to here; split the file")),
        _ => Ok(()),
    };
    let size = |name: Name, axes: Axes| Size { name, axes, output: model.output_dtype };
    match (model.shapes.as_deref(), model.axes.as_deref()) {
        (Some(entries @ [_, ..]), _) => {
            let folder = path.parent().unwrap_or(Path::new("."));
            for (index, entry) in entries.iter().enumerate() {
                let invalid = |error: ShapeError| ModelError { shape: Some(index), message: error.to_string() };
                match entry {
                    ShapeEntry::Source(source) => {
                        check_count(sizes.len(), source.count().unwrap_or(0))?;
                        let shapes = source.shapes_in(folder).map_err(invalid)?;
                        check_count(sizes.len(), shapes.len() as u64)?;
                        let with_output = |named| Size { output: model.output_dtype, ..Size::from(named) };
                        sizes.extend(shapes.into_iter().map(with_output));
                    }
                    ShapeEntry::Sizes(listed) => {
                        check_count(sizes.len(), 1)?;
                        let axes = ShapeEntry::axes(listed, names).map_err(invalid)?;
                        if names == MATMUL_AXES {
                            Shape::try_from(&axes).map_err(invalid)?;
                        }
                        sizes.push(size(Size::CUSTOM, axes));
                    }
                }
            }
        }
        (_, Some(grids)) => {
            let grids: Result<Vec<Grid>, _> = grids.iter().map(AxisValues::grid).collect();
            for grid in grids.map_err(|error| format!("axes: {error}"))? {
                check_count(sizes.len(), grid.count())?;
                sizes.extend(grid.iter().map(|axes| size(Size::CUSTOM, axes)));
            }
        }
        (_, None) => {
            let preset = |preset: Preset| match model.model {
                Some(ModelName(Subject::Operator(operator))) => preset.sizes(operator),
                _ => preset.shapes_for_axes(names),
            };
            let axes = model.preset.map(preset).unwrap_or_default();
            sizes.extend(axes.into_iter().map(|axes| size(Size::CUSTOM, axes)));
        }
    }
    Ok(sizes)
}

/// Rejects keys that external programs do not support.
fn check_foreign_keys(model: &ModelEntry) -> Result<(), String> {
    let keys = [
        ("model", model.model.is_some()),
        ("shapes", model.shapes.is_some()),
        ("preset", model.preset.is_some()),
        ("implementations", model.implementations.is_some()),
        ("dtype", model.dtype.is_some()),
        ("output_dtype", model.output_dtype.is_some()),
        ("torch_compile_mode", model.torch_compile_mode.is_some()),
        ("use_torch_compile", model.use_torch_compile.is_some()),
    ];
    match keys.into_iter().find(|(_, given)| *given) {
        Some((key, _)) => {
            Err(format!("{key} and foreign are mutually exclusive; external programs use axes, arguments and names"))
        }
        None => Ok(()),
    }
}
