//! `calorimeter ops`, `gemm` and `fusion`: suites of operators at preset sizes.

use super::error::CliError;
use super::options::{OpsArguments, SuiteArguments};
use super::run::execute;
use crate::Exit;
use crate::dialects::default_element;
use crate::entries::{Entry, Origin, Size};
use crate::mock::MockRule;
use crate::print::width;
use crate::progress::RecordFormat;
use crate::run::Request;
use calorimeter_case::names_match;
use calorimeter_probe::calibration::{self, Patterns};
use calorimeter_recipes::{Dtype, Element};
use calorimeter_shapes::{Axes, MAX_SHAPES};
use calorimeter_sinks::{atomic, log_line, operators, terminal};
use calorimeter_zoo::operators::presets::Preset;
use calorimeter_zoo::{Operator, Subject, Suite, ZooError};
use std::collections::BTreeSet;
use std::path::Path;

pub(super) fn ops(arguments: OpsArguments) -> Result<Exit, CliError> {
    let OpsArguments { batch_sizes, sequence_lengths, dimensions, suite: arguments } = arguments;
    let axes = [("batch", batch_sizes), ("sequence", sequence_lengths), ("dimension", dimensions)];
    suite(
        Suite::Ops,
        arguments,
        axes.into_iter().filter_map(|(name, values)| Some((name.to_owned(), values?))).collect(),
    )
}

/// Measures the operators of a suite. `given` holds axis values in addition to `--axis`.
pub(super) fn suite(
    suite: Suite,
    arguments: SuiteArguments,
    mut given: Vec<(String, Vec<u64>)>,
) -> Result<Exit, CliError> {
    let SuiteArguments { ops, preset, dtypes, axis, output, export, mut run } = arguments;
    run.overrides.export = export;
    given.extend(axis.into_iter().map(|axis| (axis.name, axis.values)));
    let entries = match &run.resume {
        Some(_) if ops.is_some() || preset.is_some() || dtypes.is_some() || !given.is_empty() => {
            let why = "--resume continues the original plan: omit operators and sizes";
            return Err(CliError::Usage(why.into()));
        }
        Some(_) => Vec::new(),
        None => entries(suite, ops, preset.unwrap_or(Preset::Quick), dtypes, &given)?,
    };
    let request = Request { entries, ..Request::default() };
    let Some(mut finished) = execute(request, run)? else { return Ok(Exit::Success) };
    if finished.format == RecordFormat::Table {
        let table = terminal::operators(&finished.outcome.records, finished.color, width());
        finished.print(&format!("\n{table}\n"));
    }
    // The table of operators replaces the suite part of the summary.
    finished.outcome.suite.clear();
    let exit = finished.print_summary();
    if let Some(path) = output {
        match suite {
            Suite::Fusion => atomic::write_named(&path, &fusion_profiles_json(&finished.dir)?)?,
            _ => operators::write(&path, &finished.outcome.records)?,
        }
        log_line!("wrote {}", path.display());
    }
    finished.finish(exit)
}

/// Fusion profiles of a run as JSON, by pattern and size.
fn fusion_profiles_json(dir: &Path) -> Result<Vec<u8>, CliError> {
    let records = calibration::read_journal(dir)?.records;
    serde_json::to_vec_pretty(&calibration::fusion_profiles(&records))
        .map_err(|error| CliError::Usage(error.to_string()))
}

/// Builds the entries that the options request.
fn entries(
    suite: Suite,
    ops: Option<Vec<String>>,
    preset: Preset,
    dtypes: Option<Vec<Element>>,
    given: &[(String, Vec<u64>)],
) -> Result<Vec<Entry>, CliError> {
    let operators = match ops {
        None => Operator::all().into_iter().filter(|operator| operator.is_listed_in(suite)).collect(),
        Some(names) => {
            let mut operators = Vec::new();
            for word in &names {
                let named = operators_by_name(suite, word).map_err(|error| CliError::Usage(error.to_string()))?;
                operators
                    .extend(named.into_iter().filter(|operator| !operators.contains(operator)).collect::<Vec<_>>());
            }
            operators
        }
    };
    let known: BTreeSet<&str> = operators.iter().flat_map(|operator| operator.info().axes).copied().collect();
    if let Some((name, _)) = given.iter().find(|(name, _)| !known.contains(name.as_str())) {
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        return Err(CliError::Usage(format!("none of these operators has the axis {name:?}; available: {known}")));
    }
    let mock = MockRule::from_environment().map_err(CliError::Usage)?;
    let (mut entries, mut asked) = (Vec::new(), 0u64);
    for operator in operators {
        let sizes: Vec<Size> = override_axes(preset.sizes(operator), given)?.into_iter().map(Size::custom).collect();
        let usual = [default_dtype(operator)];
        let elements = dtypes.as_deref().unwrap_or(&usual);
        asked = asked.saturating_add((sizes.len() as u64).saturating_mul(elements.len() as u64));
        if asked > MAX_SHAPES {
            let why = format!("{asked} sizes including {operator}, more than {MAX_SHAPES}; give fewer values");
            return Err(CliError::Usage(why));
        }
        for &element in elements {
            let origin = Origin::command(suite.name());
            entries.push(Entry {
                element,
                peak_memory: suite == Suite::Ops,
                mock: mock.clone(),
                ..Entry::new(origin, Subject::Operator(operator), sizes.clone())
            });
        }
    }
    Ok(entries)
}

/// Common names of operators.
const ALIASES: &[(&str, &[&str])] = &[("loss", &["mse_loss", "cross_entropy"]), ("swish", &["silu"])];

/// Returns the operators that a word denotes: a family of fusion patterns, an alias, or one operator. Operators of the
/// suite take precedence over operators of the same name in other suites.
fn operators_by_name(suite: Suite, word: &str) -> Result<Vec<Operator>, ZooError> {
    if let (Suite::Fusion, Ok(Patterns(patterns))) = (suite, word.parse()) {
        return patterns.iter().map(|pattern| pattern.operator.parse()).collect();
    }
    if let Some((_, names)) = ALIASES.iter().find(|(known, _)| names_match(word, known)) {
        return names.iter().map(|name| name.parse()).collect();
    }
    let mut listed = Operator::all().into_iter().filter(|operator| operator.is_listed_in(suite));
    match listed.find(|operator| names_match(word, operator.info().name)) {
        Some(operator) => Ok(vec![operator]),
        None => Ok(vec![word.parse()?]),
    }
}

/// Replaces the values of the given axes in the preset sizes, in every combination.
fn override_axes(preset: Vec<Axes>, given: &[(String, Vec<u64>)]) -> Result<Vec<Axes>, CliError> {
    let mut sizes = preset;
    for (name, values) in given {
        let with = |axes: &Axes, value: u64| {
            let pairs = axes.iter().map(|(axis, size)| (axis.to_owned(), if axis == name { value } else { size }));
            Axes::new(pairs).unwrap_or_default()
        };
        if sizes.iter().any(|axes| axes.get(name).is_some()) {
            let count = sizes.len().saturating_mul(values.len());
            if count as u64 > MAX_SHAPES {
                let why = format!("--axis {name}: {count} sizes, more than {MAX_SHAPES}; give fewer values");
                return Err(CliError::Usage(why));
            }
            sizes = sizes.iter().flat_map(|axes| values.iter().map(move |&value| with(axes, value))).collect();
        }
    }
    let mut seen = BTreeSet::new();
    sizes.retain(|axes| seen.insert(axes.clone()));
    Ok(sizes)
}

/// Default dtype of the inputs of an operator.
fn default_dtype(operator: Operator) -> Element {
    match operator.info().suite {
        Suite::Gemm => default_element(operator),
        _ => Element::Float(Dtype::F32),
    }
}
