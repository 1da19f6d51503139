//! Programs of others that do the same work: commands, shared libraries, CUDA C++ kernels. Each is set beside the first.

mod amount;
mod argument;
mod command;
#[cfg(feature = "cuda")]
mod kernel;
#[allow(unsafe_code, reason = "the interface of shared libraries that are not ours")]
mod library;
mod memory;
mod open;
mod outputs;
mod problem;
mod registry;
mod words;

pub use amount::Amount;
pub use argument::{Argument, Content, Role, Value, Whole};
pub use problem::ForeignProblem;
pub use registry::Foreign;
pub use words::words;

use calorimeter_case::{Axes, Element, Implementation, Name, excerpt};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Characters that a command is called by at most.
const LONGEST: usize = 60;

/// Work that several programs do, with everything that they are given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeignWork {
    /// What it is called in ids.
    pub name: String,
    /// Who does it; the others are compared with the first.
    pub subjects: Vec<ForeignSubject>,
    /// What kernels and libraries are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Argument>,
    /// How far outputs may be from the first subject's, relative to their size; without it, as far as sums in another
    /// order may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Floating-point operations of one call, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<Amount>,
    /// The least traffic of one call, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Amount>,
}

/// One of several programs that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeignSubject {
    /// What it is called in ids and tables: its implementation.
    pub label: String,
    /// What it is.
    pub program: Program,
}

/// A program that is not ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// A process, started and waited for.
    Command {
        /// The program and its arguments; `{n}` stands for the axis n.
        words: Vec<String>,
        /// Where it is started.
        directory: String,
    },
    /// A shared library with the interface of `calorimeter.h`.
    Library {
        /// The file.
        path: String,
    },
    /// CUDA C++, compiled when it is opened.
    Kernel(KernelSource),
}

/// A kernel in a CUDA C++ source, and how it is launched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelSource {
    /// The file.
    pub path: String,
    /// The kernel's name; that of a template with its parameters, `add<float>`.
    pub entry: String,
    /// Blocks in x, y and z.
    pub grid: Vec<Amount>,
    /// Threads of a block in x, y and z.
    pub block: Vec<Amount>,
    /// Bytes of shared memory for each block, besides what the source declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Amount>,
}

impl ForeignSubject {
    /// Its implementation.
    pub fn implementation(&self) -> Implementation {
        Implementation::Other(Name::from(self.label.clone()))
    }
}

impl Program {
    /// A word for its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Library { .. } => "library",
            Self::Kernel(_) => "kernel",
        }
    }

    /// What it is called where no name was given: as long as it takes to tell it from others. No slash is in it, because
    /// slashes separate the parts of an id.
    fn names(&self) -> Vec<String> {
        let of_file = |path: &str| -> Vec<String> {
            let parts: Vec<&str> = path.rsplit('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
            (1..=parts.len()).map(|count| parts[..count].iter().rev().copied().collect::<Vec<_>>().join("-")).collect()
        };
        match self {
            Self::Command { words, .. } => {
                let first = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
                let rest = words.iter().skip(1).map(|word| word.replace('/', "-"));
                let line = [first.to_owned()].into_iter().chain(rest).collect::<Vec<_>>().join(" ");
                vec![excerpt(&line, LONGEST / 2)]
            }
            Self::Library { path } => of_file(path),
            Self::Kernel(source) => {
                let with_entry = |name: String| [name.clone(), format!("{name}:{}", source.entry)];
                of_file(&source.path).into_iter().flat_map(with_entry).collect()
            }
        }
    }
}

/// Names for programs that have none: the shortest by which all can be told apart, and numbers where nothing else does.
pub fn labeled(programs: Vec<(Option<String>, Program)>) -> Vec<ForeignSubject> {
    let names: Vec<Vec<String>> = programs
        .iter()
        .map(|(name, program)| name.as_ref().map_or_else(|| program.names(), |name| vec![name.clone()]))
        .collect();
    let at = |names: &[String], length: usize| names[length.min(names.len() - 1)].clone();
    let longest = names.iter().map(Vec::len).max().unwrap_or(1);
    let differ = |length: &usize| {
        let mut seen = HashSet::new();
        names.iter().all(|names| seen.insert(at(names, *length)))
    };
    let length = (0..longest).find(differ).unwrap_or(0);
    let mut taken = HashSet::new();
    let label = |(names, (_, program)): (&Vec<String>, (Option<String>, Program))| {
        let name = at(names, length);
        let numbered = |number: usize| if number == 1 { name.clone() } else { format!("{name}-{number}") };
        // There are more numbers than programs.
        let label = (1..).map(numbered).find(|label| !taken.contains(label)).unwrap_or_default();
        taken.insert(label.clone());
        ForeignSubject { label, program }
    };
    names.iter().zip(programs).map(label).collect()
}

impl ForeignWork {
    /// Whether it makes sense; the error says what would.
    pub fn check(&self) -> Result<(), String> {
        let Some(first) = self.subjects.first() else {
            return Err("there is no subject: name a command, a shared library or a CUDA C++ source".into());
        };
        let mut labels = HashSet::new();
        if let Some(twice) = self.subjects.iter().find(|subject| !labels.insert(&subject.label)) {
            return Err(format!("two subjects are called {:?}: give each a name of its own", twice.label));
        }
        let is_plain = |name: &str| !name.is_empty() && !name.contains('/') && !name.chars().any(char::is_control);
        if let Some(wrong) = labels.into_iter().chain([&self.name]).find(|name| !is_plain(name)) {
            return Err(format!("{wrong:?} is no name: give it one without / and control characters"));
        }
        for subject in &self.subjects {
            let ForeignSubject { label, program } = subject;
            if let Program::Kernel(KernelSource { grid, block, .. }) = program
                && [grid, block].iter().any(|sides| sides.is_empty() || sides.len() > 3)
            {
                return Err(format!("{label}: a grid and a block take one to three sizes each, for x, y and z"));
            }
            if matches!(program, Program::Command { words, .. } if words.is_empty()) {
                return Err(format!("{label}: its command is empty"));
            }
        }
        if !self.arguments.is_empty() && self.subjects.iter().all(|subject| subject.program.kind() == "command") {
            return Err(format!("arguments are for kernels and libraries; {} is a command", first.label));
        }
        match self.tolerance {
            Some(tolerance) if !(0.0..1.0).contains(&tolerance) => {
                Err(format!("a tolerance of {tolerance} is none: it takes 0 to 1, such as 1e-5"))
            }
            _ => Ok(()),
        }
    }

    /// The type that stands for its numbers: that of the first output, or of the first buffer; bytes where there are none.
    pub fn element(&self) -> Element {
        let buffers = self.arguments.iter().filter_map(|argument| match argument {
            Argument::Buffer { element, role, .. } => Some((*element, role.is_written())),
            Argument::Value(_) => None,
        });
        let written = buffers.clone().find(|(_, written)| *written);
        written.or_else(|| buffers.clone().next()).map_or(Element::Unsigned(8), |(element, _)| element)
    }

    /// Refuses a size at which something cannot be said.
    fn check_at(&self, axes: &Axes) -> Result<(), String> {
        self.arguments.iter().try_for_each(|argument| argument.at(axes).map(drop))?;
        let amounts = self.flops.iter().chain(&self.bytes);
        let mut amounts: Vec<&Amount> = amounts.collect();
        for subject in &self.subjects {
            match &subject.program {
                Program::Kernel(KernelSource { grid, block, shared, .. }) => {
                    amounts.extend(grid.iter().chain(block).chain(shared));
                }
                Program::Command { words, .. } => command::at(words, axes).map(drop)?,
                Program::Library { .. } => {}
            }
        }
        amounts.into_iter().try_for_each(|amount| amount.at(axes).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(path: &str) -> (Option<String>, Program) {
        (None, Program::Library { path: path.into() })
    }

    fn command(line: &str) -> (Option<String>, Program) {
        (None, Program::Command { words: words(line).unwrap(), directory: ".".into() })
    }

    fn labels(programs: Vec<(Option<String>, Program)>) -> Vec<String> {
        labeled(programs).into_iter().map(|subject| subject.label).collect()
    }

    #[test]
    fn names_are_as_short_as_tells_programs_apart() {
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
            (None, Program::Kernel(source))
        };
        assert_eq!(labels(vec![kernel("add"), library("/a/x.so")]), ["add.cu", "x.so"]);
        assert_eq!(labels(vec![kernel("add"), kernel("add4")]), ["add.cu:add", "add.cu:add4"]);
    }
}
