//! From a file of ours to entries.

use super::axes::AxisValues;
use super::file::{File, Mode, ModelEntry};
use crate::dialects::names::ModelName;
use crate::dialects::{Document, Source, yaml};
use crate::entries::{CompileMode, ConfigError, Entry, Origin, Size};
use calorimeter_case::Axes;
use calorimeter_recipes::{Dtype, Element, Sparsity};
use calorimeter_shapes::ShapeSource;
use calorimeter_zoo::{Subject, ZooError};
use std::path::Path;

/// What a file asks for.
pub fn read(source: &Source) -> Result<Document, ConfigError> {
    let file: File = yaml::parse(&source.path, &source.text)?;
    let invalid = |message: &str| Err(ConfigError::invalid(source.path.clone(), message));
    if file.mode == Mode::Training {
        return invalid("benchmark_mode training is not available in this version; only inference is");
    }
    if file.models.is_empty() {
        return invalid("models (or model_params) is missing or empty: nothing to run");
    }
    let operator = |entry: &ModelEntry| matches!(entry.model.or(file.model), Some(ModelName(Subject::Operator(_))));
    if !file.models.iter().all(operator) && file.recipes.is_empty() && file.sparsities.iter().all(Option::is_none) {
        return invalid(
            "recipes (or quantization_config_recipe_names) is missing or empty; write for example [baseline, int8wo]",
        );
    }
    let mut entries = Vec::with_capacity(file.models.len());
    for (index, model) in file.models.iter().enumerate() {
        let origin = Origin::listed(&source.path, "models", index);
        let entry = entry(&file, file.defaults().overwrite(model), origin.clone());
        entries.push(entry.map_err(|message| origin.invalid(message))?);
    }
    Ok(Document { entries, output_dir: file.output_dir.map(Into::into), notes: Vec::new() })
}

fn entry(file: &File, model: ModelEntry, origin: Origin) -> Result<Entry, String> {
    let subject = match model.model {
        Some(ModelName(subject)) => subject,
        None => Subject::Model("linear".parse().map_err(|error: ZooError| error.to_string())?),
    };
    let sizes = sizes(&model, &origin.path)?;
    let sparsities: Vec<Sparsity> = file.sparsities.iter().flatten().copied().collect();
    Ok(Entry {
        name: model.name,
        element: model.dtype.unwrap_or(Element::Float(Dtype::Bf16)),
        recipes: file.recipes.clone(),
        sparsities,
        // torchao added the baseline itself for as long as it had this key.
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
        timing: model.timing.unwrap_or_default(),
        timeout: model.timeout,
        seed: model.seed,
        mock: model.mock.unwrap_or_default(),
        ..Entry::new(origin, subject, sizes)
    })
}

/// The sizes of a model: shapes for what has m, k and n, axes for other operators.
fn sizes(model: &ModelEntry, path: &Path) -> Result<Vec<Size>, String> {
    let size = |name: String, axes: Axes| Size { name, axes, output: model.output_dtype };
    match (model.shapes.as_deref(), model.axes.as_deref()) {
        (Some([_, ..]), Some(_)) => Err("shapes and axes are both given: keep one".into()),
        (Some(sources @ [_, ..]), None) => {
            let shapes = |source: &ShapeSource| source.shapes_in(path.parent().unwrap_or(Path::new(".")));
            let shapes: Result<Vec<_>, _> = sources.iter().map(shapes).collect();
            let shapes = shapes.map_err(|error| error.to_string())?.into_iter().flatten();
            Ok(shapes.map(|named| size(named.name.to_string(), named.shape.into())).collect())
        }
        (_, Some(grids)) => {
            let points: Result<Vec<Vec<Axes>>, _> = grids.iter().map(AxisValues::points).collect();
            let points = points.map_err(|error| format!("axes: {error}"))?.into_iter().flatten();
            Ok(points.map(|axes| size("custom".into(), axes)).collect())
        }
        _ => Ok(Vec::new()),
    }
}
