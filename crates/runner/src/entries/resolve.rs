//! Resolution of entries: a pure function of entries, command line and devices.

use super::{
    CompileMode, ConfigError, Entry, HumanDuration, MAX_CASES, MAX_WINDOWS, Overrides, ResolvedEntry, ScaleFactor,
    Size, Timing,
};
use calorimeter_case::{Device, Element, Export, Implementation, Mode, Name, Regime};
use calorimeter_external::is_external;
use calorimeter_probe::devices::Devices;
use calorimeter_probe::regimes;
use calorimeter_recipes::{RecipeVariant, pair};
use calorimeter_timing::Options;
use calorimeter_zoo::{Subject, Suite, Task};
use std::time::Duration;

/// Default seed of inputs and weights.
const SEED: u64 = 42;

/// Fills in all defaults, for the command line and devices of this run.
pub fn resolve(
    entries: Vec<Entry>,
    overrides: &Overrides,
    devices: &Devices,
) -> Result<Vec<ResolvedEntry>, ConfigError> {
    check_overrides_apply(&entries, overrides)?;
    let mut resolved = Vec::with_capacity(entries.len());
    let mut cases = 0u64;
    for entry in entries {
        let origin = entry.origin.clone();
        let entry = resolve_entry(overrides.apply_to(entry), overrides.scale_shapes, devices);
        let entry = entry.map_err(|message| origin.invalid(message))?;
        cases = cases.saturating_add(entry.case_count());
        if cases > MAX_CASES {
            let remedy = "reduce shapes, recipes, implementations or regimes, or split the plan";
            return Err(origin.invalid(format!("{cases} cases up to here, more than {MAX_CASES}; {remedy}")));
        }
        resolved.push(entry);
    }
    for (index, entry) in resolved.iter_mut().enumerate() {
        if let Some(folder) = &overrides.export {
            let folder = Some(folder.clone());
            entry.export =
                Some(Export { entry: index as u32, csv_path: folder.clone(), metrics_dir: folder, benchmark: None });
        }
        if overrides.untimed {
            // Without times, regimes make no difference.
            entry.regimes = vec![Regime::default()];
        }
    }
    Ok(resolved)
}

/// Rejects command-line options that apply to no entry.
fn check_overrides_apply(entries: &[Entry], overrides: &Overrides) -> Result<(), ConfigError> {
    let Some(first) = entries.first() else { return Ok(()) };
    if overrides.recipes.is_some() && !entries.iter().any(Entry::takes_recipes) {
        return Err(first.origin.invalid("--recipes: no entry takes recipes; they apply to models and training"));
    }
    if overrides.implementations.is_some() && entries.iter().all(|entry| matches!(entry.subject, Subject::Foreign(_))) {
        let why = "--implementations does not apply to external programs; select programs with --filter";
        return Err(first.origin.invalid(why));
    }
    if overrides.sizes.is_some() && !entries.iter().any(Entry::is_matmul) {
        return Err(first.origin.invalid("--shapes: no entry has the axes m, k and n"));
    }
    Ok(())
}

fn resolve_entry(entry: Entry, scale: Option<ScaleFactor>, devices: &Devices) -> Result<ResolvedEntry, String> {
    let (subject, element, seed) = (entry.subject, entry.element, entry.seed.unwrap_or(SEED));
    if entry.sizes.is_empty() {
        return Err(missing_sizes_message(subject));
    }
    let tasks = entry.sizes.into_iter().map(|size| task(subject, element, size, scale, seed));
    let tasks = tasks.collect::<Result<Vec<(Name, Task)>, String>>()?;
    let mut variants = match subject {
        Subject::Model(_) => pair(&entry.recipes, &entry.sparsities),
        Subject::Operator(operator) if operator.info().suite == Suite::Training => pair(&entry.recipes, &[]),
        // Recipes apply to models only.
        Subject::Operator(_) | Subject::Foreign(_) => vec![RecipeVariant::BASELINE],
    };
    let implied_baseline = !variants.contains(&RecipeVariant::BASELINE) && !entry.with_baseline;
    variants.retain(|variant| *variant != RecipeVariant::BASELINE);
    variants.insert(0, RecipeVariant::BASELINE);
    let fleet = entry.device.unwrap_or_default().choose_all(devices).map_err(|error| error.to_string())?;
    let device = *fleet.first().ok_or("no device found")?;
    let implementations = match (subject, entry.implementations) {
        // The order is kept, since the first program is the reference.
        (Subject::Foreign(foreign), _) => foreign.implementations(),
        (_, Some(names)) => requested_implementations(names, is_external).ok_or("implementations is empty")?,
        (_, None) => default_implementations(subject, &tasks, entry.compile_mode, device),
    };
    let regimes = match entry.regimes {
        Some(names) => sorted_unique(names).ok_or("regimes is empty")?,
        None => vec![default_regime(&tasks, device)],
    };
    Ok(ResolvedEntry {
        name: entry.name,
        mode: mode(subject),
        subject,
        element,
        tasks,
        device,
        fleet: if fleet.len() > 1 { fleet } else { Vec::new() },
        variants,
        implied_baseline,
        implementations,
        regimes,
        compile_mode: entry.compile_mode,
        profiler: entry.profiler,
        memory_profiler: entry.memory_profiler,
        percentiles: entry.percentiles,
        peak_memory: entry.peak_memory,
        timing: options(&entry.timing)?,
        timeout: entry.timeout.map_or(Duration::from_secs(300), |span| span.0),
        seed,
        mock: entry.mock,
        export: entry.export,
    })
}

/// Task of a subject at a size, optionally scaled, with the name of the size.
fn task(
    subject: Subject,
    element: Element,
    size: Size,
    scale: Option<ScaleFactor>,
    seed: u64,
) -> Result<(Name, Task), String> {
    let Size { name, axes, output } = size;
    let (name, axes) = match scale {
        Some(factor) => (format!("{name} scaled").into(), factor.scale_axes(&axes)),
        None => (name, axes),
    };
    let task = Task::new(subject, &axes, element, output, seed).map_err(|error| error.to_string())?;
    Ok((name, task))
}

/// Error message for an entry without sizes.
fn missing_sizes_message(subject: Subject) -> String {
    match subject {
        Subject::Model(_) => "shapes (or matrix_shapes) is missing or empty".into(),
        Subject::Operator(operator) => {
            format!("axes is missing or empty; axes of {operator}: {}", operator.info().axes.join(", "))
        }
        Subject::Foreign(_) => "axes is empty; omit it if there are none".into(),
    }
}

/// Sorts and deduplicates a list; `None` if it is empty.
fn sorted_unique<T: Ord>(mut names: Vec<T>) -> Option<Vec<T>> {
    names.sort_unstable();
    names.dedup();
    Some(names).filter(|names| !names.is_empty())
}

/// Implementations that an entry specifies, without repetitions; `None` if there are none. If an external one is measured
/// without `eager`, the first one is the reference of speed-ups, and remains the first one.
fn requested_implementations(
    names: Vec<Implementation>,
    is_external: impl Fn(Implementation) -> bool,
) -> Option<Vec<Implementation>> {
    let has_reference = names.contains(&Implementation::Eager) || !names.iter().any(|&one| is_external(one));
    let first = names.first().copied().filter(|_| !has_reference);
    let mut names = sorted_unique(names)?;
    if let Some(first) = first {
        names.retain(|&one| one != first);
        names.insert(0, first);
    }
    Some(names)
}

/// Implementations of an entry that specifies none.
fn default_implementations(
    subject: Subject,
    tasks: &[(Name, Task)],
    mode: Option<CompileMode>,
    device: Device,
) -> Vec<Implementation> {
    use Implementation::{Eager, Fused};
    if let Some(mode) = mode {
        let torch = mode.torch_implementations().into_iter().filter(|&one| is_external(one));
        return mode.implementations().into_iter().chain(torch).collect();
    }
    // Without a request, unavailable implementations are not planned.
    let available = available_implementations(subject, tasks, device);
    let burn = available.iter().copied().filter(|it| matches!(it, Eager | Fused)).collect::<Vec<_>>();
    if matches!(subject, Subject::Model(_)) && !burn.is_empty() { burn } else { available }
}

/// Available implementations of an operator on a device, or `eager`, which records the reason, if there are none.
/// Fusion patterns always include `eager` and `fused`.
fn available_implementations(subject: Subject, tasks: &[(Name, Task)], device: Device) -> Vec<Implementation> {
    use Implementation::{Eager, Fused};
    let mut having: Vec<Implementation> = tasks.iter().flat_map(|(_, task)| task.implementations(device)).collect();
    if mode(subject) == Mode::Operator(Suite::Fusion) {
        having.extend([Eager, Fused]);
    }
    sorted_unique(having).unwrap_or_else(|| vec![Eager])
}

/// Default regime. For external programs, the first regime that all of them support.
fn default_regime(tasks: &[(Name, Task)], device: Device) -> Regime {
    let Some((_, Task::Foreign(problem))) = tasks.first() else { return Regime::default() };
    let rotates = problem.buffer_bytes().is_some();
    let exists = |regime: &Regime| {
        let has = |implementation| regimes::supported_foreign(*regime, problem, implementation, device).is_ok();
        problem.foreign.implementations().into_iter().all(has) && (rotates || *regime != Regime::DeviceCold)
    };
    [Regime::DeviceCold, Regime::DeviceHot].into_iter().find(exists).unwrap_or(Regime::HostE2e)
}

/// Mode of a subject.
fn mode(subject: Subject) -> Mode {
    match subject {
        Subject::Model(_) => Mode::Inference,
        Subject::Operator(operator) => Mode::for_suite(operator.info().suite),
        Subject::Foreign(_) => Mode::for_suite(Suite::Foreign),
    }
}

fn options(timing: &Timing) -> Result<Options, String> {
    let default = Options::default();
    let span = |span: Option<HumanDuration>, default: Duration| span.map_or(default, |span| span.0);
    let max_time = span(timing.max_time, default.max_time);
    let options = Options {
        precision: timing.precision.map_or(default.precision, |share| share.0),
        min_windows: timing.min_windows.unwrap_or(default.min_windows),
        max_windows: timing.max_windows.unwrap_or(default.max_windows),
        min_time: span(timing.min_time, default.min_time),
        max_time,
        window: span(timing.window, default.window),
        // A short `max_time` also shortens the default warm-up.
        warm_up: span(timing.warm_up, default.warm_up.min(max_time / 2)),
        max_warm_up: span(timing.max_warm_up, default.max_warm_up),
        margin: timing.margin.map_or(default.margin, |share| share.0),
        ..default
    };
    if options.max_windows > MAX_WINDOWS {
        let max = options.max_windows;
        return Err(format!(
            "timing: invalid max_windows {max}: expected at most {MAX_WINDOWS}, since each window is stored"
        ));
    }
    if options.min_windows > options.max_windows || options.max_windows == 0 {
        let (min, max) = (options.min_windows, options.max_windows);
        return Err(format!(
            "timing: invalid window limits: min_windows {min}, max_windows {max}; expected min <= max and max > 0"
        ));
    }
    // Either bound may be set on its own; the other one is adjusted.
    Ok(Options {
        min_time: options.min_time.min(options.max_time),
        max_warm_up: options.max_warm_up.max(options.warm_up),
        ..options
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_time_bounds_follow_set_ones() {
        let timing = |max_time: &str, warm_up: Option<&str>| {
            let span = |text: &str| text.parse::<HumanDuration>().unwrap();
            let timing = Timing { max_time: Some(span(max_time)), warm_up: warm_up.map(span), ..Timing::default() };
            let options = options(&timing).unwrap();
            [options.min_time, options.warm_up, options.max_warm_up].map(|span| span.as_millis())
        };
        assert_eq!(timing("5s", None), [300, 200, 3000]);
        assert_eq!(timing("200ms", None), [200, 100, 3000]);
        assert_eq!(timing("200ms", Some("4s")), [200, 4000, 4000]);
    }

    #[test]
    fn first_implementation_remains_first_without_eager() {
        let names = |list: &str| list.split(' ').map(Implementation::from_record).collect::<Vec<_>>();
        let is_external = |implementation| !Implementation::ALL.contains(&implementation);
        for (listed, expected) in [
            ("torch native torch", "torch native"),
            ("my-kernel torch native", "my-kernel native torch"),
            ("torch native eager", "eager native torch"),
            ("native fused", "fused native"),
        ] {
            assert_eq!(requested_implementations(names(listed), is_external), Some(names(expected)), "{listed}");
        }
        assert_eq!(requested_implementations(Vec::new(), is_external), None);
    }
}
