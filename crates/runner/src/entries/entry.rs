//! One thing that is to be measured, as it is asked for.

use super::error::ConfigError;
use super::{CompileMode, Span, Timing, Wanted};
use crate::mock::Rule;
use calorimeter_case::{Axes, Export, Implementation, Name, Regime};
use calorimeter_recipes::{Dtype, Element, Recipe, Sparsity};
use calorimeter_shapes::NamedShape;
use calorimeter_zoo::{Subject, Suite};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A model or an operator at its sizes, and how it is to be measured. What is absent is built in.
///
/// ```
/// use calorimeter_runner::entries::{Entry, Origin, Size};
/// use calorimeter_shapes::Shape;
///
/// let origin = Origin::command("mine");
/// let sizes = vec![Size::custom(Shape::new(8, 4096, 4096)?.into())];
/// let entry = Entry {
///     recipes: vec!["baseline".parse()?, "int8wo".parse()?],
///     ..Entry::new(origin, "linear".parse()?, sizes)
/// };
/// assert_eq!(entry.sizes[0].axes.to_string(), "m8-k4096-n4096");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Where it was asked for.
    pub origin: Origin,
    /// The name that its cases carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The model or operator, or work of others.
    #[serde(with = "subject")]
    pub subject: Subject,
    /// What it is computed at.
    pub sizes: Vec<Size>,
    /// The type of its numbers: a model's before they are quantized, an operator's inputs.
    pub element: Element,
    /// How it is quantized; an operator is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<Recipe>,
    /// Sparsities, paired with the recipes that can take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparsities: Vec<Sparsity>,
    /// Whether the baseline counts as asked for where it is not among the recipes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_baseline: bool,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Wanted>,
    /// Whose kernels run; without it those of the compile mode, or those that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementations: Option<Vec<Implementation>>,
    /// torch's word for what to compile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_mode: Option<CompileMode>,
    /// What its times mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regimes: Option<Vec<Regime>>,
    /// Whether to write traces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profiler: bool,
    /// Whether to follow its memory and to write snapshots.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_profiler: bool,
    /// Whether to time single launches for their percentiles.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub percentiles: bool,
    /// Whether to follow its memory for the peaks alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peak_memory: bool,
    /// How long and how precisely to measure.
    #[serde(default)]
    pub timing: Timing,
    /// When to give up on a case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Seed of inputs and weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What the mock device does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mock: Vec<Rule>,
    /// Where the program that a file was written for wants its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<Export>,
}

/// Where an entry was asked for, as errors say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file, or the command.
    #[serde(with = "crate::written_path")]
    pub path: PathBuf,
    /// Where in a file, e.g. `models[0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// One size of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Such as `llama_ffn.w2` or `custom`.
    pub name: Name,
    /// The sizes themselves.
    #[serde(with = "in_order")]
    pub axes: Axes,
    /// The type of an operator's outputs, where it has a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Element>,
}

impl Entry {
    /// A subject at its sizes in bf16, with everything else as it is built in.
    pub fn new(origin: Origin, subject: Subject, sizes: Vec<Size>) -> Self {
        Self {
            origin,
            name: None,
            subject,
            sizes,
            element: Element::Float(Dtype::Bf16),
            recipes: Vec::new(),
            sparsities: Vec::new(),
            with_baseline: false,
            device: None,
            implementations: None,
            compile_mode: None,
            regimes: None,
            profiler: false,
            memory_profiler: false,
            percentiles: false,
            peak_memory: false,
            timing: Timing::default(),
            timeout: None,
            seed: None,
            mock: Vec::new(),
            export: None,
        }
    }

    /// Whether recipes say how it multiplies.
    pub fn takes_recipes(&self) -> bool {
        match self.subject {
            Subject::Model(_) => true,
            Subject::Operator(operator) => operator.info().suite == Suite::Training,
            Subject::Foreign(_) => false,
        }
    }

    /// Whether its sizes are those of a matrix product.
    pub fn is_product(&self) -> bool {
        match self.subject {
            Subject::Model(_) => true,
            Subject::Operator(operator) => operator.info().axes == ["m", "k", "n"],
            Subject::Foreign(_) => false,
        }
    }
}

impl Origin {
    /// Asked for by a command, or by a program.
    pub fn command(name: &str) -> Self {
        Self { path: name.into(), place: None }
    }

    /// Asked for at this position of a list in a file.
    pub fn listed(path: &Path, list: &str, index: usize) -> Self {
        Self { path: path.to_owned(), place: Some(format!("{list}[{index}]")) }
    }

    /// An error of what was asked for here.
    pub fn invalid(&self, message: impl Display) -> ConfigError {
        let place = self.place.as_ref().map_or_else(String::new, |place| format!("{place}: "));
        ConfigError::invalid(self.path.clone(), format!("{place}{message}"))
    }
}

impl Size {
    /// What a size is called that has no name of its own.
    pub const CUSTOM: Name = Name::new("custom");

    /// The size of what has no axes.
    pub fn none() -> Self {
        Self { name: Name::new(""), axes: Axes::default(), output: None }
    }

    /// A size that has no name of its own.
    pub fn custom(axes: Axes) -> Self {
        Self { name: Self::CUSTOM, axes, output: None }
    }
}

impl From<NamedShape> for Size {
    fn from(named: NamedShape) -> Self {
        Self { name: named.name.into(), axes: named.shape.into(), output: None }
    }
}

/// What is known by its name, as that name; work of others as everything that it is.
mod subject {
    use calorimeter_zoo::Subject;
    use calorimeter_zoo::foreign::Foreign;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Written {
        Name(String),
        Foreign(Foreign),
    }

    pub fn serialize<S: Serializer>(subject: &Subject, serializer: S) -> Result<S::Ok, S::Error> {
        match subject {
            Subject::Foreign(foreign) => foreign.serialize(serializer),
            Subject::Model(_) | Subject::Operator(_) => serializer.collect_str(subject),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Subject, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Name(name) => name.parse().map_err(Error::custom),
            Written::Foreign(foreign) => Ok(Subject::Foreign(foreign)),
        }
    }
}

/// Axes as pairs: the order of a JSON object is lost on the way through a journal's header.
mod in_order {
    use calorimeter_case::Axes;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(axes: &Axes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(axes.iter())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Axes, D::Error> {
        Axes::new(Vec::<(String, u64)>::deserialize(deserializer)?).map_err(Error::custom)
    }
}
