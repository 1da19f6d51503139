//! From a file of ours to entries.

use super::axes::AxisValues;
use super::file::{File, Mode, ModelEntry};
use super::{programs, training};
use crate::dialects::names::ModelName;
use crate::dialects::{Document, Source, yaml};
use crate::entries::{CompileMode, ConfigError, Entry, MOST_ENTRIES, Origin, Size};
use calorimeter_case::{Axes, Name};
use calorimeter_recipes::{Dtype, Element, Sparsity};
use calorimeter_shapes::{Grid, MAX_SHAPES};
use calorimeter_zoo::{Subject, ZooError};
use std::collections::HashSet;
use std::hash::Hash;
use std::path::Path;

/// What a file asks for.
pub fn read(source: &Source) -> Result<Document, ConfigError> {
    let mut file = said_once(yaml::parse(source)?);
    let invalid = |message: &str| Err(ConfigError::invalid(source.path.clone(), message));
    if file.models.len() > MOST_ENTRIES {
        return invalid(&format!("{} models, more than {MOST_ENTRIES}; split the file", file.models.len()));
    }
    if file.models.is_empty() {
        return invalid("models (or model_params) is missing or empty: nothing to run");
    }
    let operator = |entry: &ModelEntry| {
        entry.foreign.is_some() || matches!(entry.model.or(file.model), Some(ModelName(Subject::Operator(_))))
    };
    if !file.models.iter().all(operator) && file.recipes.is_empty() && file.sparsities.iter().all(Option::is_none) {
        return invalid(
            "recipes (or quantization_config_recipe_names) is missing or empty; write for example [baseline, int8wo]",
        );
    }
    let notes = if file.mode == Mode::Training {
        let invalid = |message: String| ConfigError::invalid(source.path.clone(), message);
        let notes = training::notes(&file).map_err(invalid)?;
        file.recipes = training::recipes(&file).map_err(invalid)?;
        notes
    } else {
        Vec::new()
    };
    let copied = copied(&file);
    if copied > MOST_COPIED {
        let (models, most) = (file.models.len(), MOST_COPIED >> 20);
        return invalid(&format!(
            "what stands at the top for each of its {models} models comes to {} MiB, more than {most}; split the file",
            copied >> 20
        ));
    }
    let mut entries = Vec::with_capacity(file.models.len());
    let mut room = MAX_SHAPES;
    for (index, model) in file.models.iter().enumerate() {
        let origin = Origin::listed(&source.path, "models", index);
        if model.foreign.is_some() {
            beside_programs(model).map_err(|message| origin.invalid(message))?;
        }
        let entry = entry(&file, file.defaults().overwrite(model), origin.clone(), room);
        let entry = entry.map_err(|message| origin.invalid(message))?;
        room = room.saturating_sub(entry.sizes.len() as u64);
        match file.mode {
            Mode::Inference => entries.push(entry),
            Mode::Training => entries.extend(
                training::passes(entry, file.optimizer.unwrap_or_default())
                    .map_err(|message| origin.invalid(message))?,
            ),
        }
    }
    Ok(Document { entries, output_dir: file.output_dir.map(Into::into), notes })
}

/// What is named again among the recipes, sparsities, implementations or regimes for all models adds nothing.
fn said_once(mut file: File) -> File {
    keep_first(&mut file.recipes);
    keep_first(&mut file.sparsities);
    file.implementations.as_mut().map(keep_first);
    file.regimes.as_mut().map(keep_first);
    file
}

fn keep_first<T: Clone + Eq + Hash>(list: &mut Vec<T>) {
    let mut seen = HashSet::with_capacity(list.len());
    list.retain(|one| seen.insert(one.clone()));
}

/// What the models of a file may take of its top together, in bytes as it would be written.
const MOST_COPIED: usize = 64 << 20;

/// How much the models take of the top of their file, each a copy of it.
fn copied(file: &File) -> usize {
    let top = serde_json::to_vec(&(&file.recipes, &file.sparsities, file.defaults()));
    top.map_or(0, |top| top.len()).saturating_mul(file.models.len())
}

fn entry(file: &File, model: ModelEntry, origin: Origin, room: u64) -> Result<Entry, String> {
    let timing = model.timing.unwrap_or_default();
    if let Some(programs) = &model.foreign {
        let entry = programs::entry(programs, origin.clone(), sizes(&model, &origin.path, room)?)?;
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
    let sizes = sizes(&model, &origin.path, room)?;
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
        timing,
        timeout: model.timeout,
        seed: model.seed,
        mock: model.mock.unwrap_or_default(),
        ..Entry::new(origin, subject, sizes)
    })
}

/// The sizes of a model: shapes for what has m, k and n, axes for other operators. They are counted before they are made.
fn sizes(model: &ModelEntry, path: &Path, room: u64) -> Result<Vec<Size>, String> {
    let mut sizes = Vec::new();
    let fits = |made: usize, more: u64| match (made as u64).saturating_add(more) {
        all if all > room => {
            Err(format!("with what stands before it the file asks for more than {MAX_SHAPES} sizes; split it"))
        }
        _ => Ok(()),
    };
    let size = |name: Name, axes: Axes| Size { name, axes, output: model.output_dtype };
    match (model.shapes.as_deref(), model.axes.as_deref()) {
        (Some([_, ..]), Some(_)) => return Err("shapes and axes are both given: keep one".into()),
        (Some(sources @ [_, ..]), None) => {
            for source in sources {
                fits(sizes.len(), source.count().unwrap_or(0))?;
                let shapes = source.shapes_in(path.parent().unwrap_or(Path::new(".")));
                let shapes = shapes.map_err(|error| error.to_string())?;
                fits(sizes.len(), shapes.len() as u64)?;
                let with_output = |named| Size { output: model.output_dtype, ..Size::from(named) };
                sizes.extend(shapes.into_iter().map(with_output));
            }
        }
        (_, Some(grids)) => {
            let grids: Result<Vec<Grid>, _> = grids.iter().map(AxisValues::grid).collect();
            for grid in grids.map_err(|error| format!("axes: {error}"))? {
                fits(sizes.len(), grid.count())?;
                sizes.extend(grid.iter().map(|axes| size(Size::CUSTOM, axes)));
            }
        }
        _ => {}
    }
    Ok(sizes)
}

/// Refuses what a model says beside its programs and they do not take.
fn beside_programs(model: &ModelEntry) -> Result<(), String> {
    let keys = [
        ("model", model.model.is_some()),
        ("shapes", model.shapes.is_some()),
        ("implementations", model.implementations.is_some()),
        ("dtype", model.dtype.is_some()),
        ("output_dtype", model.output_dtype.is_some()),
        ("torch_compile_mode", model.torch_compile_mode.is_some()),
        ("use_torch_compile", model.use_torch_compile.is_some()),
    ];
    match keys.into_iter().find(|(_, given)| *given) {
        Some((key, _)) => {
            Err(format!("{key} and foreign are both given: programs of others have axes, arguments and names"))
        }
        None => Ok(()),
    }
}
