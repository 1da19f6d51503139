//! Foreign work: external programs that do the same work. Commands, shared libraries, CUDA C++ kernels and external
//! workers are compared with the first of them.

mod argument;
mod axis_expression;
mod command;
mod command_line;
#[cfg(feature = "native")]
mod kernel;
#[allow(unsafe_code, reason = "the interface of shared libraries that are not ours")]
mod library;
mod memory;
mod open;
mod outputs;
mod problem;
mod registry;

pub use argument::{Argument, BufferContent, BufferRole, IntegerType, ResolvedBuffer, ResolvedContent, ScalarArgument};
pub use axis_expression::AxisExpression;
pub use command_line::split_command;
pub use problem::ForeignProblem;
pub use registry::ForeignHandle;

use crate::gate::ElementTolerance;
use calorimeter_case::{Axes, Element, Implementation, Name, excerpt};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Maximum length of a command's derived name.
const MAX_NAME_CHARS: usize = 60;

/// Work done by several programs, with their arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeignWork {
    /// Name in case ids.
    pub name: String,
    /// Programs; the first is the reference of the others.
    pub subjects: Vec<ForeignSubject>,
    /// Arguments of kernels and libraries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Argument>,
    /// Maximum relative difference from the outputs of the first subject. Defaults to the difference expected from a
    /// different order of additions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Floating-point operations of one call, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<AxisExpression>,
    /// Minimum memory traffic of one call, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<AxisExpression>,
    /// Limits of elementwise errors, instead of `tolerance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element_tolerance: Option<ElementTolerance>,
    /// JSON of the workload in a data set of flashinfer-bench, copied to the cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flashinfer_workload: Option<String>,
}

/// Compared program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeignSubject {
    /// Name of the implementation in case ids and tables.
    pub label: String,
    /// Program.
    pub program: ForeignProgram,
}

/// External program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignProgram {
    /// Process, started and waited for at each launch.
    Command {
        /// Program and arguments; `{n}` stands for the axis n.
        words: Vec<String>,
        /// Working directory.
        directory: String,
    },
    /// Shared library with the interface of `calorimeter.h`.
    Library {
        /// Path.
        path: String,
    },
    /// CUDA C++ kernel, compiled when opened.
    Kernel(KernelSource),
    /// Process that speaks the protocol of external workers; opened by the crate `calorimeter-external`.
    Worker {
        /// Program and arguments.
        words: Vec<String>,
    },
    /// Program that cannot be measured.
    Unsupported {
        /// Reason for the reader of the record.
        reason: String,
    },
}

/// Kernel in a CUDA C++ source, and its launch configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelSource {
    /// Path.
    pub path: String,
    /// Name of the kernel; a template has its parameters, as in `add<float>`.
    pub entry: String,
    /// Blocks in x, y and z.
    pub grid: Vec<AxisExpression>,
    /// Threads of a block in x, y and z.
    pub block: Vec<AxisExpression>,
    /// Dynamic shared memory per block in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<AxisExpression>,
}

impl ForeignSubject {
    /// Implementation with the name of this subject.
    pub fn implementation(&self) -> Implementation {
        Implementation::Other(Name::from(self.label.clone()))
    }
}

impl ForeignProgram {
    /// Name of the variant.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Library { .. } => "library",
            Self::Kernel(_) => "kernel",
            Self::Worker { .. } => "worker",
            Self::Unsupported { .. } => "unsupported",
        }
    }

    /// Names for a program without a given name, from the shortest to the most specific.
    ///
    /// Slashes are replaced, because they separate the parts of a case id.
    fn candidate_names(&self) -> Vec<String> {
        let of_file = |path: &str| -> Vec<String> {
            let parts: Vec<&str> = path.rsplit('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
            (1..=parts.len()).map(|count| parts[..count].iter().rev().copied().collect::<Vec<_>>().join("-")).collect()
        };
        match self {
            Self::Command { words, .. } => {
                let first = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
                let rest = words.iter().skip(1).map(|word| word.replace('/', "-"));
                let line = [first.to_owned()].into_iter().chain(rest).collect::<Vec<_>>().join(" ");
                vec![excerpt(&line, MAX_NAME_CHARS / 2)]
            }
            Self::Library { path } => of_file(path),
            Self::Kernel(source) => {
                let with_entry = |name: String| [name.clone(), format!("{name}:{}", source.entry)];
                of_file(&source.path).into_iter().flat_map(with_entry).collect()
            }
            Self::Worker { words } => words.last().map_or_else(Vec::new, |word| of_file(word)),
            Self::Unsupported { .. } => vec![self.kind().to_owned()],
        }
    }
}

/// Assigns labels to programs: given names, or the shortest derived names that are all distinct, numbered as a last
/// resort.
pub fn assign_labels(programs: Vec<(Option<String>, ForeignProgram)>) -> Vec<ForeignSubject> {
    let names: Vec<Vec<String>> = programs
        .iter()
        .map(|(name, program)| name.as_ref().map_or_else(|| program.candidate_names(), |name| vec![name.clone()]))
        .collect();
    let at = |names: &[String], length: usize| names[length.min(names.len() - 1)].clone();
    let longest = names.iter().map(Vec::len).max().unwrap_or(1);
    let differ = |length: &usize| {
        let mut seen = HashSet::new();
        names.iter().all(|names| seen.insert(at(names, *length)))
    };
    let length = (0..longest).find(differ).unwrap_or(0);
    let mut taken = HashSet::new();
    let label = |(names, (_, program)): (&Vec<String>, (Option<String>, ForeignProgram))| {
        let name = at(names, length);
        let numbered = |number: usize| if number == 1 { name.clone() } else { format!("{name}-{number}") };
        // The iterator is infinite, hence the label is always found.
        let label = (1..).map(numbered).find(|label| !taken.contains(label)).unwrap_or_default();
        taken.insert(label.clone());
        ForeignSubject { label, program }
    };
    names.iter().zip(programs).map(label).collect()
}

impl ForeignWork {
    /// Checks names, launch configurations and tolerance; the error says how to fix it.
    pub fn check(&self) -> Result<(), String> {
        let Some(first) = self.subjects.first() else {
            return Err("missing subject: expected a command, a shared library or a CUDA C++ source".into());
        };
        let mut labels = HashSet::new();
        if let Some(twice) = self.subjects.iter().find(|subject| !labels.insert(&subject.label)) {
            return Err(format!("duplicate subject name {:?}: give each subject a unique name", twice.label));
        }
        let is_plain = |name: &str| !name.is_empty() && !name.contains('/') && !name.chars().any(char::is_control);
        if let Some(wrong) = labels.into_iter().chain([&self.name]).find(|name| !is_plain(name)) {
            return Err(format!("invalid name {wrong:?}: expected a nonempty name without / and control characters"));
        }
        for subject in &self.subjects {
            let ForeignSubject { label, program } = subject;
            if let ForeignProgram::Kernel(KernelSource { grid, block, .. }) = program
                && [grid, block].iter().any(|sides| sides.is_empty() || sides.len() > 3)
            {
                return Err(format!(
                    "{label}: invalid grid or block: expected one to three sizes each, for x, y and z"
                ));
            }
            if let ForeignProgram::Command { words, .. } | ForeignProgram::Worker { words } = program
                && words.is_empty()
            {
                return Err(format!("{label}: empty command"));
            }
        }
        if !self.arguments.is_empty() && self.subjects.iter().all(|subject| subject.program.kind() == "command") {
            return Err(format!("arguments are only supported by kernels and libraries; {} is a command", first.label));
        }
        match self.tolerance {
            Some(tolerance) if !(0.0..1.0).contains(&tolerance) => {
                Err(format!("invalid tolerance {tolerance}: expected 0 to 1, e.g. 1e-5"))
            }
            _ => Ok(()),
        }
    }

    /// Representative element type: of the first output, else of the first buffer, else bytes.
    pub fn element(&self) -> Element {
        let buffers = self.arguments.iter().filter_map(|argument| match argument {
            Argument::Buffer { element, role, .. } => Some((*element, role.is_written())),
            Argument::Value(_) => None,
        });
        let written = buffers.clone().find(|(_, written)| *written);
        written.or_else(|| buffers.clone().next()).map_or(Element::Unsigned(8), |(element, _)| element)
    }

    /// Checks that all expressions can be evaluated at a size.
    fn check_at(&self, axes: &Axes) -> Result<(), String> {
        self.arguments.iter().try_for_each(|argument| argument.resolve(axes).map(drop))?;
        let amounts = self.flops.iter().chain(&self.bytes);
        let mut amounts: Vec<&AxisExpression> = amounts.collect();
        for subject in &self.subjects {
            match &subject.program {
                ForeignProgram::Kernel(KernelSource { grid, block, shared, .. }) => {
                    amounts.extend(grid.iter().chain(block).chain(shared));
                }
                ForeignProgram::Command { words, .. } => command::substitute_axes(words, axes).map(drop)?,
                ForeignProgram::Library { .. } | ForeignProgram::Worker { .. } | ForeignProgram::Unsupported { .. } => {
                }
            }
        }
        amounts.into_iter().try_for_each(|amount| amount.evaluate(axes).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(path: &str) -> (Option<String>, ForeignProgram) {
        (None, ForeignProgram::Library { path: path.into() })
    }

    fn command(line: &str) -> (Option<String>, ForeignProgram) {
        (None, ForeignProgram::Command { words: split_command(line).unwrap(), directory: ".".into() })
    }

    fn labels(programs: Vec<(Option<String>, ForeignProgram)>) -> Vec<String> {
        assign_labels(programs).into_iter().map(|subject| subject.label).collect()
    }

    #[test]
    fn labels_are_short_and_distinct() {
        assert_eq!(labels(vec![library("/a/old.so"), library("/a/new.so")]), ["old.so", "new.so"]);
        assert_eq!(labels(vec![library("/a/old/x.so"), library("/a/new/x.so")]), ["old-x.so", "new-x.so"]);
        assert_eq!(labels(vec![library("/a/x.so"), library("/a/x.so")]), ["x.so", "x.so-2"]);
        assert_eq!(labels(vec![command("./a.out in/x"), command("sleep 0.1")]), ["a.out in-x", "sleep 0.1"]);
        let named = |name: &str, path: &str| (Some(name.to_owned()), library(path).1);
        assert_eq!(labels(vec![named("old", "/a/x.so"), library("/a/x.so")]), ["old", "x.so"]);
        let kernel = |entry: &str| {
            let one = || vec!["1".parse().unwrap()];
            let source =
                KernelSource { path: "/a/add.cu".into(), entry: entry.into(), grid: one(), block: one(), shared: None };
            (None, ForeignProgram::Kernel(source))
        };
        assert_eq!(labels(vec![kernel("add"), library("/a/x.so")]), ["add.cu", "x.so"]);
        assert_eq!(labels(vec![kernel("add"), kernel("add4")]), ["add.cu:add", "add.cu:add4"]);
    }
}
