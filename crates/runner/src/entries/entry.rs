//! Requested measurement.

use super::error::ConfigError;
use super::{CompileMode, DeviceSelection, HumanDuration, Timing};
use crate::mock::MockRule;
use calorimeter_case::{Axes, Export, Implementation, Name, Regime};
use calorimeter_recipes::{Dtype, Element, Recipe, Sparsity};
use calorimeter_shapes::NamedShape;
use calorimeter_zoo::{Subject, Suite};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Model or operator with its sizes and measurement options. Absent options have built-in defaults.
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
    /// Origin of the request.
    pub origin: Origin,
    /// Name of its cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Model, operator or external program.
    #[serde(with = "subject")]
    pub subject: Subject,
    /// Sizes.
    pub sizes: Vec<Size>,
    /// Dtype: of an unquantized model, or of the inputs of an operator.
    pub element: Element,
    /// Quantization recipes; empty for operators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<Recipe>,
    /// Sparsities, combined with the recipes that support them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparsities: Vec<Sparsity>,
    /// True if the baseline is requested even if `recipes` lacks it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_baseline: bool,
    /// Device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceSelection>,
    /// Implementations; default: those of the compile mode, or the available ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementations: Option<Vec<Implementation>>,
    /// Compile mode of torch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_mode: Option<CompileMode>,
    /// Timing modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regimes: Option<Vec<Regime>>,
    /// Write traces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profiler: bool,
    /// Profile memory and write snapshots.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_profiler: bool,
    /// Time single launches for percentiles.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub percentiles: bool,
    /// Measure peak memory only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peak_memory: bool,
    /// Measuring time and precision.
    #[serde(default)]
    pub timing: Timing,
    /// Time limit of a case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
    /// Seed of inputs and weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Rules of the mock device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mock: Vec<MockRule>,
    /// Output folders for the formats of accelerator-microbenchmarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<Export>,
}

/// Origin of an entry, for error messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// File or command.
    #[serde(with = "crate::path_serde")]
    pub path: PathBuf,
    /// Position in the file, e.g. `models[0]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// Size of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Name such as `llama_ffn.w2` or `custom`.
    pub name: Name,
    /// Values by axis.
    #[serde(with = "in_order")]
    pub axes: Axes,
    /// Dtype of the outputs of an operator, if it supports several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Element>,
}

impl Entry {
    /// Creates an entry in bf16 with defaults for everything else.
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

    /// True if quantization recipes apply to the subject.
    pub fn takes_recipes(&self) -> bool {
        match self.subject {
            Subject::Model(_) => true,
            Subject::Operator(operator) => operator.info().suite == Suite::Training,
            Subject::Foreign(_) => false,
        }
    }

    /// True if the sizes are those of a matmul: m, k and n.
    pub fn is_matmul(&self) -> bool {
        match self.subject {
            Subject::Model(_) => true,
            Subject::Operator(operator) => operator.info().axes == ["m", "k", "n"],
            Subject::Foreign(_) => false,
        }
    }
}

impl Origin {
    /// Origin of entries that a command or program requests.
    pub fn command(name: &str) -> Self {
        Self { path: name.into(), place: None }
    }

    /// Origin of an entry at a position in a list of a file.
    pub fn in_list(path: &Path, list: &str, index: usize) -> Self {
        Self { path: path.to_owned(), place: Some(format!("{list}[{index}]")) }
    }

    /// Creates an error at this origin.
    pub fn invalid(&self, message: impl Display) -> ConfigError {
        let place = self.place.as_ref().map_or_else(String::new, |place| format!("{place}: "));
        ConfigError::invalid(self.path.clone(), format!("{place}{message}"))
    }
}

impl Size {
    /// Default name of a size.
    pub const CUSTOM: Name = Name::new("custom");

    /// Size of a subject without axes.
    pub fn without_axes() -> Self {
        Self { name: Name::new(""), axes: Axes::default(), output: None }
    }

    /// Size without a name of its own.
    pub fn custom(axes: Axes) -> Self {
        Self { name: Self::CUSTOM, axes, output: None }
    }
}

impl From<NamedShape> for Size {
    fn from(named: NamedShape) -> Self {
        Self { name: named.name.into(), axes: named.shape.into(), output: None }
    }
}

/// Serializes models and operators by name, and external programs in full.
mod subject {
    use calorimeter_zoo::Subject;
    use calorimeter_zoo::foreign::ForeignHandle;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum SerializedSubject {
        Name(String),
        Foreign(ForeignHandle),
    }

    pub(super) fn serialize<S: Serializer>(subject: &Subject, serializer: S) -> Result<S::Ok, S::Error> {
        match subject {
            Subject::Foreign(foreign) => foreign.serialize(serializer),
            Subject::Model(_) | Subject::Operator(_) => serializer.collect_str(subject),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Subject, D::Error> {
        match SerializedSubject::deserialize(deserializer)? {
            SerializedSubject::Name(name) => name.parse().map_err(Error::custom),
            SerializedSubject::Foreign(foreign) => Ok(Subject::Foreign(foreign)),
        }
    }
}

/// Serializes axes as pairs, since journal headers do not preserve the order of JSON objects.
mod in_order {
    use calorimeter_case::Axes;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(axes: &Axes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(axes.iter())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Axes, D::Error> {
        Axes::new(Vec::<(String, u64)>::deserialize(deserializer)?).map_err(Error::custom)
    }
}
