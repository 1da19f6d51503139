//! External programs: the key `foreign` of a model.

use crate::entries::{Entry, Origin, Programs, Size, word};
use calorimeter_zoo::foreign::{Argument, AxisExpression, ForeignProgram, KernelSource, split_command};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Programs that perform the same work; the first one is the reference.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map such as {subjects: [{command: ./old}, {command: ./new}]}")]
pub(crate) struct ForeignPrograms {
    /// Name of the work in case ids; default: the kernel, `command` or `library`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Programs, each a command, a library or a kernel. The first one is the reference.
    pub subjects: Vec<ProgramEntry>,
    /// Arguments of kernels and libraries, in order: f32:n:in is a buffer of n elements, i32=n a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<ArgumentText>,
    /// Allowed relative difference of outputs from the first program's; default: that of a different summation order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Floating-point operations of one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<AmountText>,
    /// Minimum memory traffic of one call in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<AmountText>,
}

/// External program. Paths are relative to the folder of the file, which is also the working directory of commands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a map such as {command: ./a.out}")]
pub(crate) struct ProgramEntry {
    /// Name in case ids and tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Command line, run without a shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// Shared library with the interface of calorimeter.h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// CUDA C++ source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Kernel in the source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Grid size in x, y and z.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grid: Vec<AmountText>,
    /// Block size in x, y and z.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<AmountText>,
    /// Dynamic shared memory per block in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<AmountText>,
}

/// Text of an amount: an integer or a formula of axes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AmountText(pub AxisExpression);

/// Text of an argument.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArgumentText(pub Argument);

/// Command line as text and as words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandLine {
    line: String,
    words: Vec<String>,
}

/// Implements `FromStr` and `Display` by delegation to field 0.
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
        Ok(Self { line: line.to_owned(), words: split_command(line)? })
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

/// Description of an amount.
const AMOUNT: &str = "an integer, or a formula of axes such as (n + 255) / 256";

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

word!(CommandLine, "a command line such as ./a.out {n}", {
    json_schema!({ "type": "string", "examples": ["./a.out {n}"] })
});

/// Builds the entry of external programs. Other keys of the model are applied by the caller.
pub(super) fn entry(programs: &ForeignPrograms, origin: Origin, sizes: Vec<Size>) -> Result<Entry, String> {
    let folder = origin.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder =
        std::path::absolute(folder).map_err(|error| format!("cannot determine the folder of the file: {error}"))?;
    let subjects = programs.subjects.iter().enumerate();
    let subjects = subjects.map(|(index, subject)| {
        let program = subject.program(&folder).map_err(|why| format!("foreign: subjects[{index}]: {why}"))?;
        Ok((subject.name.clone(), program))
    });
    let amount = |text: &Option<AmountText>| text.as_ref().map(|AmountText(amount)| amount.clone());
    let programs = Programs {
        name: programs.name.clone(),
        programs: subjects.collect::<Result<_, String>>()?,
        arguments: programs.arguments.iter().map(|ArgumentText(argument)| argument.clone()).collect(),
        tolerance: programs.tolerance,
        flops: amount(&programs.flops),
        bytes: amount(&programs.bytes),
    };
    programs.entry(origin, sizes).map_err(|why| format!("foreign: {why}"))
}

impl ProgramEntry {
    fn program(&self, folder: &Path) -> Result<ForeignProgram, String> {
        let Self { command, library, kernel, entry, grid, block, shared, .. } = self;
        let text = |path: std::path::PathBuf| {
            path.into_os_string()
                .into_string()
                .map_err(|_| "expected a path in UTF-8, because journals record it".to_owned())
        };
        let has_launch_options = entry.is_some() || !grid.is_empty() || !block.is_empty() || shared.is_some();
        if has_launch_options && kernel.is_none() {
            return Err("entry, grid, block and shared require a kernel".into());
        }
        let amounts = |texts: &[AmountText]| texts.iter().map(|AmountText(amount)| amount.clone()).collect::<Vec<_>>();
        match (command, library, kernel) {
            (Some(command), None, None) => {
                Ok(ForeignProgram::Command { words: command.words.clone(), directory: text(folder.to_owned())? })
            }
            (None, Some(library), None) => Ok(ForeignProgram::Library { path: text(folder.join(library))? }),
            (None, None, Some(kernel)) => {
                let Some(entry) = entry.clone() else {
                    return Err(format!("missing entry: select a kernel of {kernel}"));
                };
                if grid.is_empty() || block.is_empty() {
                    return Err(format!("missing grid or block: set the launch configuration of {entry}"));
                }
                let shared = shared.as_ref().map(|AmountText(amount)| amount.clone());
                let path = text(folder.join(kernel))?;
                Ok(ForeignProgram::Kernel(KernelSource {
                    path,
                    entry,
                    grid: amounts(grid),
                    block: amounts(block),
                    shared,
                }))
            }
            _ => Err("expected exactly one of command, library and kernel".into()),
        }
    }
}
