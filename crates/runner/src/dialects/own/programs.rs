//! Programs of others in a file of ours: the key `foreign` of a model.

use crate::entries::{Entry, Origin, Programs, Size, word};
use calorimeter_zoo::foreign::{Amount, Argument, KernelSource, Program, words};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Programs that do the same work: each is set beside the first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForeignPrograms {
    /// What the work is called in ids: the kernel, or `command` or `library`, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The programs: each a command, a library or a kernel. The others are compared with the first.
    pub subjects: Vec<ProgramEntry>,
    /// What kernels and libraries are given, in order: f32:n:in is a buffer of n numbers, i32=n a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<ArgumentText>,
    /// How far outputs may be from the first program's, relative to their size; as far as sums in another order if nothing
    /// is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Floating-point operations of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<AmountText>,
    /// Bytes that one call must move at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<AmountText>,
}

/// One program. Paths are relative to the file's folder, and commands are started there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramEntry {
    /// What it is called in ids and tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A command in one line; no shell is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// A shared library with the interface of calorimeter.h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// A CUDA C++ source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Which kernel of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Its blocks in x, y and z.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grid: Vec<AmountText>,
    /// Threads of a block in x, y and z.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<AmountText>,
    /// Bytes of shared memory for a block, besides what the source declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<AmountText>,
}

/// An amount as it is written: a number, or a formula of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct AmountText(pub Amount);

/// An argument as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentText(pub Argument);

/// A command as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandLine {
    line: String,
    words: Vec<String>,
}

/// Implements `FromStr` and `Display` by what is inside.
macro_rules! text_of {
    ($type:ident) => {
        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                text.parse().map(Self)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

text_of!(AmountText);
text_of!(ArgumentText);

impl FromStr for CommandLine {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        Ok(Self { line: line.to_owned(), words: words(line)? })
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl Serialize for AmountText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AmountText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = AmountText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(AMOUNT)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<AmountText, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<AmountText, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Text)
    }
}

/// What an amount is, in words.
const AMOUNT: &str = "a whole number, or a formula of axes such as (n + 255) / 256";

impl JsonSchema for AmountText {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": AMOUNT, "type": ["integer", "string"], "minimum": 0 })
    }
}

word!(ArgumentText, "an argument: a buffer such as f32:n:in, or a value such as i32=n", {
    json_schema!({ "type": "string", "examples": ["f32:n:in", "f32:n:out", "f32:n:inout", "i32=n"] })
});

word!(CommandLine, "a command in one line, such as ./a.out {n}", {
    json_schema!({ "type": "string", "examples": ["./a.out {n}"] })
});

/// The entry for the programs of a model, which stands under these defaults.
pub fn entry(programs: &ForeignPrograms, origin: Origin, sizes: Vec<Size>) -> Result<Entry, String> {
    let folder = origin.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = std::path::absolute(folder).map_err(|error| format!("the folder of the file is unknown: {error}"))?;
    let subjects = programs.subjects.iter().enumerate();
    let subjects = subjects.map(|(index, subject)| {
        let program = subject.program(&folder).map_err(|why| format!("foreign: subjects[{index}]: {why}"))?;
        Ok((subject.name.clone(), program))
    });
    let amount = |text: &Option<AmountText>| text.as_ref().map(|AmountText(amount)| amount.clone());
    let asked = Programs {
        name: programs.name.clone(),
        programs: subjects.collect::<Result<_, String>>()?,
        arguments: programs.arguments.iter().map(|ArgumentText(argument)| argument.clone()).collect(),
        tolerance: programs.tolerance,
        flops: amount(&programs.flops),
        bytes: amount(&programs.bytes),
    };
    asked.entry(origin, sizes).map_err(|why| format!("foreign: {why}"))
}

impl ProgramEntry {
    fn program(&self, folder: &Path) -> Result<Program, String> {
        let Self { command, library, kernel, entry, grid, block, shared, .. } = self;
        let text = |path: std::path::PathBuf| {
            path.into_os_string()
                .into_string()
                .map_err(|_| "its path is no UTF-8, and journals are to name it".to_owned())
        };
        let launched = entry.is_some() || !grid.is_empty() || !block.is_empty() || shared.is_some();
        if launched && kernel.is_none() {
            return Err("entry, grid, block and shared are for a kernel, and there is none".into());
        }
        let amounts = |texts: &[AmountText]| texts.iter().map(|AmountText(amount)| amount.clone()).collect::<Vec<_>>();
        match (command, library, kernel) {
            (Some(command), None, None) => {
                Ok(Program::Command { words: command.words.clone(), directory: text(folder.to_owned())? })
            }
            (None, Some(library), None) => Ok(Program::Library { path: text(folder.join(library))? }),
            (None, None, Some(kernel)) => {
                let Some(entry) = entry.clone() else {
                    return Err(format!("entry is missing: which kernel of {kernel}?"));
                };
                if grid.is_empty() || block.is_empty() {
                    return Err(format!("grid or block is missing: how is {entry} launched?"));
                }
                let shared = shared.as_ref().map(|AmountText(amount)| amount.clone());
                let path = text(folder.join(kernel))?;
                Ok(Program::Kernel(KernelSource { path, entry, grid: amounts(grid), block: amounts(block), shared }))
            }
            _ => Err("one of command, library and kernel is needed, and no two of them".into()),
        }
    }
}
