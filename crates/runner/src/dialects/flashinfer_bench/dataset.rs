//! Data set in a folder: `definitions/**/*.json`, `solutions/**/*.json` and `workloads/**/*.jsonl`.

use super::schema::{KernelDefinition, KernelWorkload, SolutionHeader, WorkloadLine};
use crate::entries::{ConfigError, Entry, Origin, Size};
use calorimeter_case::UnknownName;
use calorimeter_zoo::Subject;
use calorimeter_zoo::foreign::{Argument, ForeignHandle, ForeignProgram, ForeignSubject, ForeignWork};
use calorimeter_zoo::gate::ElementTolerance;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Implementation that runs the reference of a definition.
const REFERENCE: &str = "reference";

/// Languages of the solutions that are measured.
const LANGUAGES: [&str; 2] = ["python", "triton"];

/// Part of a data set to measure, and the tolerance of outputs.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatasetOptions {
    /// Names of definitions; empty for all.
    pub definitions: Vec<String>,
    /// Names of solutions; empty for all.
    pub solutions: Vec<String>,
    /// Maximum number of workloads per definition.
    pub workloads: Option<usize>,
    /// Maximum absolute error of an element.
    pub atol: f64,
    /// Maximum relative error of an element.
    pub rtol: f64,
    /// Minimum share of correct elements; default: depends on the definition.
    pub matched_share: Option<f64>,
}

/// Object with the file that contains it.
struct Located<T> {
    path: String,
    content: T,
}

/// Builds an entry for each workload of a data set. Also returns notes about parts of the data set that are not used.
pub(crate) fn entries(dir: &Path, options: &DatasetOptions) -> Result<(Vec<Entry>, Vec<String>), ConfigError> {
    let root = dir.canonicalize().map_err(|cause| ConfigError::Read { path: dir.to_owned(), cause })?;
    let definitions = read_objects(&root.join("definitions"), |definition: &KernelDefinition| &definition.name)?;
    if definitions.is_empty() {
        return Err(ConfigError::invalid(root, "expected a data set with definitions/**/*.json"));
    }
    let solutions = read_objects(&root.join("solutions"), |solution: &SolutionHeader| &solution.name)?;
    check_names("definition", &options.definitions, &definitions, &root)?;
    check_names("solution", &options.solutions, &solutions, &root)?;
    let is_asked = |asked: &[String], name: &str| asked.is_empty() || asked.iter().any(|known| known == name);
    let (mut entries, mut orphans) = (Vec::new(), BTreeSet::new());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let unknown = solutions.values().filter(|solution| !definitions.contains_key(&solution.content.definition));
    orphans.extend(unknown.map(|solution| solution.content.definition.clone()));
    for path in files(&root.join("workloads"), "jsonl")? {
        let text = read(&path)?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let origin = Origin { path: path.clone(), place: Some(format!("line {}", number + 1)) };
            let line: WorkloadLine = serde_json::from_str(line).map_err(|error| origin.invalid(error))?;
            let Some((name, definition)) = definitions.get_key_value(&line.definition) else {
                orphans.insert(line.definition);
                continue;
            };
            let count = counts.entry(name).or_default();
            if !is_asked(&options.definitions, name) || options.workloads.is_some_and(|limit| *count >= limit) {
                continue;
            }
            *count += 1;
            let own = solutions.values().filter(|solution| {
                solution.content.definition == *name && is_asked(&options.solutions, &solution.content.name)
            });
            if options.solutions.is_empty() || own.clone().next().is_some() {
                entries.push(entry(&root, definition, own, line, &origin, options).map_err(|why| origin.invalid(why))?);
            }
        }
    }
    let mut notes: Vec<String> =
        orphans.iter().map(|name| format!("{name} has workloads or solutions, and no definition")).collect();
    let unused = definitions.keys().filter(|name| is_asked(&options.definitions, name));
    let unused = unused.filter(|name| !counts.contains_key(name.as_str()));
    notes.extend(unused.map(|name| format!("{name} has no workload, and is not measured")));
    if entries.is_empty() {
        return Err(ConfigError::invalid(root, "no workloads of these definitions: expected workloads/**/*.jsonl"));
    }
    Ok((entries, notes))
}

/// Entry of a workload. Work that this version does not support is planned with the reason.
fn entry<'a>(
    root: &Path,
    definition: &Located<KernelDefinition>,
    solutions: impl Iterator<Item = &'a Located<SolutionHeader>>,
    line: WorkloadLine,
    origin: &Origin,
    options: &DatasetOptions,
) -> Result<Entry, String> {
    let Located { path, content: kernel } = definition;
    if line.solution.is_some() {
        return Err("expected a workload, which has no solution".into());
    }
    let json = line.workload.to_string();
    let workload: KernelWorkload = serde_json::from_value(line.workload).map_err(|error| error.to_string())?;
    let axes = kernel.axes(&workload)?;
    let arguments = kernel.check_supported().and_then(|()| kernel.arguments(&workload, root));
    let program = |solution: Option<&Located<SolutionHeader>>| program(path, solution, &arguments);
    let reference = ForeignSubject { label: REFERENCE.to_owned(), program: program(None) };
    let solutions = solutions
        .map(|solution| ForeignSubject { label: solution.content.name.clone(), program: program(Some(solution)) });
    let subjects = [reference].into_iter().chain(solutions).collect();
    let work = ForeignWork {
        name: kernel.name.clone(),
        subjects,
        arguments: arguments.unwrap_or_default(),
        tolerance: None,
        flops: None,
        bytes: None,
        element_tolerance: Some(ElementTolerance {
            absolute: options.atol,
            relative: options.rtol,
            matched_share: options.matched_share.unwrap_or_else(|| kernel.matched_share()),
        }),
        flashinfer_workload: Some(json),
    };
    work.check()?;
    let foreign = ForeignHandle::from(work);
    let size = Size { name: workload.uuid.into(), axes, output: None };
    Ok(Entry { element: foreign.element(), ..Entry::new(origin.clone(), Subject::Foreign(foreign), vec![size]) })
}

/// Program that runs the reference of a definition, or a solution.
fn program(
    definition: &str,
    solution: Option<&Located<SolutionHeader>>,
    arguments: &Result<Vec<Argument>, String>,
) -> ForeignProgram {
    let language = solution.map(|solution| solution.content.spec.language.as_str());
    if let Some(language) = language.filter(|language| !LANGUAGES.contains(language)) {
        let reason = format!("the language {language} is not supported: expected {}", LANGUAGES.join(" or "));
        return ForeignProgram::Unsupported { reason };
    }
    if let Err(reason) = arguments {
        return ForeignProgram::Unsupported { reason: reason.clone() };
    }
    let words = ["python3", "-m", "calorimeter", "flashinfer-bench", definition];
    let words = words.into_iter().chain(solution.map(|solution| solution.path.as_str()));
    ForeignProgram::Worker { words: words.map(ToOwned::to_owned).collect() }
}

/// Reads the JSON files below a folder; an error for a name that occurs twice.
fn read_objects<T: DeserializeOwned>(
    folder: &Path,
    name: impl Fn(&T) -> &String,
) -> Result<BTreeMap<String, Located<T>>, ConfigError> {
    let mut found = BTreeMap::new();
    for path in files(folder, "json")? {
        let content: T = serde_json::from_str(&read(&path)?)
            .map_err(|error| ConfigError::invalid(path.clone(), error.to_string()))?;
        let Some(text) = path.to_str().map(ToOwned::to_owned) else {
            return Err(ConfigError::invalid(path, "expected a path in UTF-8, because journals record it"));
        };
        let name = name(&content).clone();
        if let Some(Located { path: first, .. }) = found.insert(name.clone(), Located { path: text, content }) {
            return Err(ConfigError::invalid(path, format!("duplicate name {name:?}, also in {first}")));
        }
    }
    Ok(found)
}

/// Files with an extension below a folder, in order of their paths; none if the folder does not exist.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, ConfigError> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop().filter(|folder| folder.exists()) {
        let unreadable = |cause| ConfigError::Read { path: folder.clone(), cause };
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|cause| ConfigError::Read { path: path.to_owned(), cause })
}

/// Rejects names that the data set does not contain.
fn check_names<T>(
    kind: &'static str,
    asked: &[String],
    known: &BTreeMap<String, T>,
    root: &Path,
) -> Result<(), ConfigError> {
    match asked.iter().find(|name| !known.contains_key(*name)) {
        Some(name) => {
            let error = UnknownName::new(kind, name, known.keys().cloned());
            Err(ConfigError::invalid(root.to_owned(), error.to_string()))
        }
        None => Ok(()),
    }
}
