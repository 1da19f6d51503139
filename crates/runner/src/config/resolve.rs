//! From files and command line to what will be run.

use super::accelerator;
use super::{AxisValues, CompileMode, ConfigError, Entry, Factor, File, Mode, ModelName, Share, Span, Timing, Wanted};
use crate::devices;
use crate::mock::Rule;
use calorimeter_case::Regime;
use calorimeter_recipes::{Dtype, Element, Sparsity, Variant, pair};
use calorimeter_shapes::{Axes, ShapeSource};
use calorimeter_sinks::record::Export;
use calorimeter_timing::Options;
use calorimeter_zoo::{Device, Implementation, Subject, Suite, Task};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A configuration file with its text, so that a run can be resumed without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Where it was read from.
    pub path: PathBuf,
    /// What it said.
    pub text: String,
}

/// What the command line sets over every file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// Instead of every file's device.
    pub device: Option<Wanted>,
    /// Instead of every entry's implementations.
    pub implementations: Option<Vec<Implementation>>,
    /// Over every entry's timing.
    pub timing: Timing,
    /// Instead of every entry's timeout.
    pub timeout: Option<super::Span>,
    /// Instead of every entry's seed.
    pub seed: Option<u64>,
    /// Only cases whose id matches this expression.
    pub filter: Option<String>,
    /// Only open and check each case: nothing is timed.
    pub untimed: bool,
    /// Instead of every entry's regimes.
    pub regimes: Option<Vec<Regime>>,
    /// Write a trace of every case.
    pub profile: bool,
    /// Follow the memory of every case.
    pub memory: bool,
    /// Whether kernels are tuned, and what becomes of the results.
    pub autotune: Autotune,
    /// Refuse to measure on a device that other processes use.
    pub require_idle: bool,
    /// Every size of every file times this. Journals from before it was there are still resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_shapes: Option<Factor>,
    /// The folder of accelerator-microbenchmarks' formats for every entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
}

/// Whether kernels are tuned, and what becomes of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Autotune {
    /// Tune what no earlier run on this device has tuned, and keep it for later ones
    #[default]
    Cached,
    /// Tune everything anew, into the run's own folder
    Fresh,
    /// Never tune: a case whose kernels no earlier run has tuned is skipped
    Off,
}

/// What will be run.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The entries of all files, in order.
    pub entries: Vec<ResolvedEntry>,
    /// Where results go, if a file says so.
    pub output_dir: Option<PathBuf>,
    /// What a reader should know of the files.
    pub notes: Vec<String>,
}

/// A task with the name that its size was given.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTask {
    /// Such as `llama_ffn.w2` or `custom`.
    pub name: String,
    /// What is computed.
    pub task: Task,
}

impl NamedTask {
    /// A subject at a size that a file gives, which the command line may scale.
    pub(super) fn new(
        name: String,
        subject: Subject,
        axes: &Axes,
        (element, output): (Element, Option<Element>),
        seed: u64,
        scale: Option<Factor>,
    ) -> Result<Self, String> {
        let (name, axes) = match scale {
            Some(factor) => (format!("{name} scaled"), factor.of_axes(axes)),
            None => (name, axes.clone()),
        };
        let task = Task::new(subject, &axes, element, output, seed).map_err(|error| error.to_string())?;
        Ok(Self { name, task })
    }
}

/// An entry with every default filled in.
#[derive(Debug, Clone)]
pub struct ResolvedEntry {
    /// The name that its cases carry, if one was given.
    pub name: Option<String>,
    /// What is done with the model, or the suite of the operator.
    pub mode: &'static str,
    /// The model or operator.
    pub subject: Subject,
    /// It, at each of its sizes.
    pub tasks: Vec<NamedTask>,
    /// The type of its numbers.
    pub element: Element,
    /// Where it runs.
    pub device: Device,
    /// Recipes with their sparsities, in the order of the file.
    pub variants: Vec<Variant>,
    /// Whether the baseline is among them only because the others are compared with it.
    pub implied_baseline: bool,
    /// Whose kernels run.
    pub implementations: Vec<Implementation>,
    /// What its times mean.
    pub regimes: Vec<Regime>,
    /// torch's word, for the compatible CSV.
    pub compile_mode: Option<CompileMode>,
    /// Whether a trace was asked for.
    pub profiler: bool,
    /// Whether memory snapshots were asked for.
    pub memory_profiler: bool,
    /// Whether the peaks of memory were asked for.
    pub peak_memory: bool,
    /// How to measure.
    pub timing: Options,
    /// When to give up on a case.
    pub timeout: Duration,
    /// Seed of its tensors.
    pub seed: u64,
    /// What the mock device does.
    pub mock: Vec<Rule>,
    /// Where the program that the file was written for wants its results.
    pub export: Option<Export>,
}

impl ResolvedEntry {
    /// Everything that was decided, as it would be written in a file; of the shapes only how many there are.
    pub fn describe(&self) -> serde_json::Value {
        let Options {
            precision,
            min_windows,
            max_windows,
            min_time,
            max_time,
            window,
            warm_up,
            max_warm_up,
            margin,
            ..
        } = self.timing;
        let timing = Timing {
            precision: Some(Share(precision)),
            min_windows: Some(min_windows),
            max_windows: Some(max_windows),
            min_time: Some(Span(min_time)),
            max_time: Some(Span(max_time)),
            window: Some(Span(window)),
            warm_up: Some(Span(warm_up)),
            max_warm_up: Some(Span(max_warm_up)),
            margin: Some(Share(margin)),
        };
        serde_json::json!({
            "name": self.name,
            "mode": self.mode,
            "model": self.subject.to_string(),
            "shapes": self.tasks.len(),
            "dtype": self.element,
            "device": self.device.to_string(),
            "recipes": self.variants.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "implementations": self.implementations.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "regimes": self.regimes,
            "timing": timing,
            "timeout": Span(self.timeout),
            "seed": self.seed,
        })
    }
}

impl Source {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Self { path: path.to_owned(), text }),
            Err(cause) => Err(ConfigError::Read { path: path.to_owned(), cause }),
        }
    }

    fn parse(&self) -> Result<File, ConfigError> {
        serde_yaml::from_str(&self.text).map_err(|error| ConfigError::yaml(self.path.clone(), &error))
    }
}

/// Resolves files under the command line's overrides. A device that is not there is an error.
pub fn resolve(sources: &[Source], overrides: &Overrides) -> Result<Resolved, ConfigError> {
    let mut resolved = Resolved { entries: Vec::new(), output_dir: None, notes: Vec::new() };
    for source in sources {
        if accelerator::is_one(&source.text) {
            accelerator::resolve(source, overrides, &mut resolved)?;
            continue;
        }
        let file = source.parse()?;
        let invalid = |message: String| ConfigError::invalid(source.path.clone(), message);
        if file.mode == Mode::Training {
            return Err(invalid("benchmark_mode training is not available in this version; only inference is".into()));
        }
        if file.models.is_empty() {
            return Err(invalid("models (or model_params) is missing or empty: nothing to run".into()));
        }
        let operator = |entry: &Entry| matches!(entry.model.or(file.model), Some(ModelName(Subject::Operator(_))));
        if !file.models.iter().all(operator) && file.recipes.is_empty() && file.sparsities.iter().all(Option::is_none) {
            let keys = "recipes (or quantization_config_recipe_names)";
            return Err(invalid(format!("{keys} is missing or empty; write for example [baseline, int8wo]")));
        }
        resolved.output_dir = resolved.output_dir.or_else(|| file.output_dir.clone().map(PathBuf::from));
        let over = overriding(overrides);
        for (index, entry) in file.models.iter().enumerate() {
            let entry = file.defaults().overwrite(entry).overwrite(&over);
            let at = |message: String| invalid(format!("models[{index}]: {message}"));
            resolved.entries.push(fill(&file, entry, &source.path, overrides.scale_shapes).map_err(at)?);
        }
    }
    if let Some(folder) = &overrides.export {
        accelerator::export(&mut resolved.entries, folder);
    }
    if overrides.untimed {
        // Without a time there is nothing for regimes to tell apart.
        resolved.entries.iter_mut().for_each(|entry| entry.regimes = vec![Regime::default()]);
    }
    Ok(resolved)
}

/// The command line as an entry over every other.
pub(super) fn overriding(overrides: &Overrides) -> Entry {
    Entry {
        device: overrides.device,
        implementations: overrides.implementations.clone(),
        timing: Some(overrides.timing),
        timeout: overrides.timeout,
        seed: overrides.seed,
        regimes: overrides.regimes.clone(),
        enable_profiler: overrides.profile.then_some(true),
        enable_memory_profiler: overrides.memory.then_some(true),
        ..Entry::default()
    }
}

fn fill(file: &File, entry: Entry, path: &Path, scale: Option<Factor>) -> Result<ResolvedEntry, String> {
    let subject = match entry.model {
        Some(ModelName(subject)) => subject,
        None => Subject::Model("linear".parse().map_err(|error: calorimeter_zoo::ZooError| error.to_string())?),
    };
    let element = entry.dtype.unwrap_or(Element::Float(Dtype::Bf16));
    let seed = entry.seed.unwrap_or(DEFAULT_SEED);
    let tasks = sizes(subject, entry.shapes.as_deref(), entry.axes.as_deref(), path)?
        .into_iter()
        .map(|(name, axes)| NamedTask::new(name, subject, &axes, (element, entry.output_dtype), seed, scale))
        .collect::<Result<Vec<NamedTask>, String>>()?;
    let sparsities: Vec<Sparsity> = file.sparsities.iter().flatten().copied().collect();
    let mut variants = pair(&file.recipes, &sparsities);
    // torchao added the baseline itself for as long as it had this key.
    let is_operator = matches!(subject, Subject::Operator(_));
    let listed = variants.contains(&Variant::BASELINE) || is_operator;
    let always = entry.use_torch_compile.is_some();
    if is_operator {
        // Recipes are for models.
        variants.clear();
    }
    variants.retain(|variant| *variant != Variant::BASELINE);
    variants.insert(0, Variant::BASELINE);
    settle(entry, subject, tasks, variants, !listed && !always)
}

/// An entry whose tasks and variants are known, with every default filled in.
pub(super) fn settle(
    entry: Entry,
    subject: Subject,
    tasks: Vec<NamedTask>,
    variants: Vec<Variant>,
    implied_baseline: bool,
) -> Result<ResolvedEntry, String> {
    let compile_mode = match (entry.torch_compile_mode, entry.use_torch_compile) {
        (_, Some(false)) => Some(CompileMode::Off),
        (mode, _) => mode,
    };
    let device = devices::resolve(entry.device.unwrap_or_default()).map_err(|error| error.to_string())?;
    let implementations = match entry.implementations {
        Some(names) if names.is_empty() => return Err("implementations is an empty list".into()),
        Some(names) => {
            let mut unique: Vec<Implementation> = names;
            unique.sort_unstable();
            unique.dedup();
            unique
        }
        None => match compile_mode {
            Some(mode) => mode.implementations(),
            // Nobody asked for what cannot run here.
            None if matches!(subject, Subject::Operator(_)) => having(subject, &tasks, device),
            None if matches!(device, Device::Cpu) => vec![Implementation::Eager],
            None => vec![Implementation::Eager, Implementation::Fused],
        },
    };
    let regimes = match entry.regimes {
        Some(names) if names.is_empty() => return Err("regimes is an empty list".into()),
        Some(names) => {
            let mut unique: Vec<Regime> = names;
            unique.sort_unstable();
            unique.dedup();
            unique
        }
        None => vec![Regime::default()],
    };
    Ok(ResolvedEntry {
        name: entry.name,
        mode: mode(subject),
        subject,
        element: tasks.first().map_or(Element::Float(Dtype::Bf16), |named| named.task.element()),
        tasks,
        device,
        variants,
        implied_baseline,
        implementations,
        regimes,
        compile_mode,
        profiler: entry.enable_profiler.unwrap_or(false),
        memory_profiler: entry.enable_memory_profiler.unwrap_or(false),
        peak_memory: entry.peak_memory.unwrap_or(false),
        timing: options(&entry.timing.unwrap_or_default())?,
        timeout: entry.timeout.map_or(Duration::from_secs(300), |span| span.0),
        seed: entry.seed.unwrap_or(DEFAULT_SEED),
        mock: entry.mock.unwrap_or_default(),
        export: None,
    })
}

/// The implementations that an operator has on a device; `eager`, which says why, where it has none. A pattern of fusion
/// is asked for its fused side in any case.
fn having(subject: Subject, tasks: &[NamedTask], device: Device) -> Vec<Implementation> {
    use Implementation::{Eager, Fused};
    let pattern = matches!(subject, Subject::Operator(operator) if operator.suite() == Suite::Fusion);
    let has = |implementation: &Implementation| {
        let supports = |named: &NamedTask| named.task.support(Variant::BASELINE, *implementation, device).is_ok();
        (pattern && [Eager, Fused].contains(implementation)) || tasks.iter().any(supports)
    };
    let having: Vec<Implementation> = Implementation::known().into_iter().filter(has).collect();
    if having.is_empty() { vec![Implementation::Eager] } else { having }
}

/// Seed of inputs and weights where none is given.
pub(super) const DEFAULT_SEED: u64 = 42;

/// What is done with it.
fn mode(subject: Subject) -> &'static str {
    match subject {
        Subject::Model(_) => "inference",
        Subject::Operator(operator) => operator.info().suite.name(),
    }
}

/// The sizes of an entry with their names: shapes for what has m, k and n, axes for other operators.
fn sizes(
    subject: Subject,
    shapes: Option<&[ShapeSource]>,
    axes: Option<&[AxisValues]>,
    path: &Path,
) -> Result<Vec<(String, Axes)>, String> {
    match (shapes, axes) {
        (Some([_, ..]), Some(_)) => Err("shapes and axes are both given: keep one".into()),
        (Some(sources @ [_, ..]), None) => {
            let base = path.parent().unwrap_or(Path::new("."));
            let mut sizes = Vec::new();
            for source in sources {
                let shapes = source.shapes_in(base).map_err(|error| error.to_string())?;
                sizes.extend(shapes.into_iter().map(|named| (named.name.to_string(), Axes::from(named.shape))));
            }
            Ok(sizes)
        }
        (_, Some(grids @ [_, ..])) => {
            let points: Result<Vec<Vec<Axes>>, _> = grids.iter().map(AxisValues::points).collect();
            let points = points.map_err(|error| format!("axes: {error}"))?;
            Ok(points.into_iter().flatten().map(|axes| ("custom".to_owned(), axes)).collect())
        }
        _ => Err(match subject {
            Subject::Model(_) => "shapes (or matrix_shapes) is missing or empty".into(),
            Subject::Operator(operator) => {
                format!("axes is missing or empty; {operator} has {}", operator.info().axes.join(", "))
            }
        }),
    }
}

fn options(timing: &Timing) -> Result<Options, String> {
    let default = Options::default();
    let span = |span: Option<super::Span>, default: Duration| span.map_or(default, |span| span.0);
    let options = Options {
        precision: timing.precision.map_or(default.precision, |share| share.0),
        min_windows: timing.min_windows.unwrap_or(default.min_windows),
        max_windows: timing.max_windows.unwrap_or(default.max_windows),
        min_time: span(timing.min_time, default.min_time),
        max_time: span(timing.max_time, default.max_time),
        window: span(timing.window, default.window),
        warm_up: span(timing.warm_up, default.warm_up),
        max_warm_up: span(timing.max_warm_up, default.max_warm_up),
        margin: timing.margin.map_or(default.margin, |share| share.0),
        ..default
    };
    if options.min_windows > options.max_windows || options.max_windows == 0 {
        let (min, max) = (options.min_windows, options.max_windows);
        return Err(format!("timing: min_windows {min} is above max_windows {max}, or max_windows is 0"));
    }
    // Each bound alone may be set on the command line: the other one follows.
    Ok(Options {
        min_time: options.min_time.min(options.max_time),
        max_warm_up: options.max_warm_up.max(options.warm_up),
        ..options
    })
}
