//! A configuration file as it is written: torchao's keys of every age, and ours.

use super::axes::{AxisValues, some_grids, some_grids_schema};
use super::programs::ForeignPrograms;
use crate::dialects::names::ModelName;
use crate::entries::{CompileMode, Span, Timing, Wanted};
use crate::mock::Rule;
use calorimeter_case::{Implementation, Regime};
use calorimeter_recipes::{Element, Recipe, Sparsity};
use calorimeter_shapes::ShapeSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to do with the models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Forward passes.
    #[default]
    Inference,
    /// The passes of models that are trained.
    Training,
}

/// Whether an operand is scaled as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scaling {
    /// It is.
    Dynamic,
    /// It is left in its own type.
    Disabled,
}

/// What shares a scale in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Granularity {
    /// An operand.
    Tensorwise,
    /// A row of what is summed up.
    #[serde(alias = "columnwise", alias = "axiswise")]
    Rowwise,
}

/// What changes a weight in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// With moments in f32.
    #[default]
    Adamw,
    /// Plain descent.
    Sgd,
}

/// Declares the keys that may stand at the top of a file, as defaults, and in each of its models.
macro_rules! shared_keys {
    ($($(#[$meta:meta])* $key:ident: $type:ty,)+) => {
        /// One entry of `models`: a model at several shapes.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct ModelEntry {
            /// A name for its cases, in the tables and in torchao's CSV.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// Where its shapes come from.
            #[serde(alias = "matrix_shapes", skip_serializing_if = "Option::is_none")]
            pub shapes: Option<Vec<ShapeSource>>,
            /// The sizes of an operator instead: values of each of its axes, in every combination.
            #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_grids")]
            #[schemars(schema_with = "some_grids_schema")]
            pub axes: Option<Vec<AxisValues>>,
            /// Programs that are not ours instead of a model: commands, shared libraries, CUDA C++ kernels.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub foreign: Option<ForeignPrograms>,
            $($(#[$meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<$type>,)+
        }

        impl ModelEntry {
            /// Takes what `over` sets, and keeps the rest.
            pub fn overwrite(self, over: &Self) -> Self {
                Self {
                    name: over.name.clone().or(self.name),
                    shapes: over.shapes.clone().or(self.shapes),
                    axes: over.axes.clone().or(self.axes),
                    foreign: over.foreign.clone().or(self.foreign),
                    timing: Some(self.timing.unwrap_or_default().overwrite(&over.timing.unwrap_or_default())),
                    ..Self { $($key: over.$key.clone().or(self.$key),)+ ..Self::default() }
                }
            }
        }

        /// A configuration file of `calorimeter run`.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default, expecting = "keys such as recipes and models")]
        pub struct File {
            /// `inference`, or `training`: the passes of each model.
            #[serde(alias = "benchmark_mode")]
            pub mode: Mode,
            /// Quantization recipes, each measured beside the baseline.
            #[serde(alias = "quantization_config_recipe_names", alias = "quantizations")]
            pub recipes: Vec<Recipe>,
            /// Sparsities, paired with the recipes that can take them.
            #[serde(alias = "sparsity_config_recipe_names")]
            pub sparsities: Vec<Option<Sparsity>>,
            /// Where results go.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub output_dir: Option<String>,
            /// The models: a list, or one map.
            #[serde(alias = "model_params", deserialize_with = "one_or_many")]
            #[schemars(schema_with = "one_or_many_schema")]
            pub models: Vec<ModelEntry>,
            /// Of training: how the input is scaled; `disabled` leaves it as it is.
            #[serde(skip_serializing)]
            pub scaling_type_input: Option<Scaling>,
            /// Of training: how the weight is scaled; `disabled` leaves it as it is.
            #[serde(skip_serializing)]
            pub scaling_type_weight: Option<Scaling>,
            /// Of training: how gradients are scaled; `disabled` leaves it as it is.
            #[serde(skip_serializing)]
            pub scaling_type_grad_output: Option<Scaling>,
            /// Of training: what shares a scale, as the recipes say too.
            #[serde(skip_serializing)]
            pub scaling_granularity: Option<Granularity>,
            /// Of training: what changes the weight (adamw).
            #[serde(skip_serializing, alias = "optimiser")]
            pub optimizer: Option<Optimizer>,
            /// Of training: whether sums of outputs may stay in the registers of tensor cores, as `native` has it.
            #[serde(skip_serializing)]
            pub use_fast_accum: Option<bool>,
            /// Of training: accepted without effect.
            #[serde(skip_serializing)]
            pub repeat_n: Option<u64>,
            $($(#[$meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<$type>,)+
        }

        impl File {
            /// The defaults that its models start from.
            pub fn defaults(&self) -> ModelEntry {
                ModelEntry { $($key: self.$key.clone(),)+ ..ModelEntry::default() }
            }
        }
    };
}

shared_keys! {
    /// The float type of the unquantized model, or the number type of an operator's inputs (bf16).
    #[serde(alias = "high_precision_dtype", alias = "precision")]
    dtype: Element,
    /// The number type of an operator's outputs, where it has a choice.
    output_dtype: Element,
    /// Which model or operator (linear).
    #[serde(alias = "model_type")]
    model: ModelName,
    /// Where to run (auto).
    device: Wanted,
    /// Whose kernels run; without it, what `torch_compile_mode` stands for, or else eager, and fused where it exists.
    implementations: Vec<Implementation>,
    /// torch's word for what to compile: default is eager and fused, max-autotune is all implementations.
    #[serde(alias = "compile")]
    torch_compile_mode: CompileMode,
    /// false is eager alone.
    use_torch_compile: bool,
    /// What times mean; each regime has cases of its own (device-cold).
    regimes: Vec<Regime>,
    /// Whether to write a trace of each case, for ui.perfetto.dev, and the table of its kernels.
    enable_profiler: bool,
    /// Whether to follow the memory of each case, and to write snapshots and a page.
    enable_memory_profiler: bool,
    /// Whether to time single launches too, for their 50th, 95th and 99th percentile.
    percentiles: bool,
    /// Whether to follow the memory of each case for its peaks alone, without files.
    peak_memory: bool,
    /// How long and how precisely to measure.
    timing: Timing,
    /// A case is ended after this long, tuning included (300s).
    timeout: Span,
    /// Seed of inputs and weights (42).
    seed: u64,
    /// What the mock device does, rule by rule; the first that matches a case's id applies.
    mock: Vec<Rule>,
}

/// torchao's documents write one map where its code takes a list.
fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<ModelEntry>, D::Error> {
    struct OneOrMany;
    impl<'de> serde::de::Visitor<'de> for OneOrMany {
        type Value = Vec<ModelEntry>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of models, or one model")
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, models: A) -> Result<Vec<ModelEntry>, A::Error> {
            Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(models))
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, model: A) -> Result<Vec<ModelEntry>, A::Error> {
            ModelEntry::deserialize(serde::de::value::MapAccessDeserializer::new(model)).map(|entry| vec![entry])
        }
    }
    deserializer.deserialize_any(OneOrMany)
}

fn one_or_many_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let (one, many) = (generator.subschema_for::<ModelEntry>(), generator.subschema_for::<Vec<ModelEntry>>());
    schemars::json_schema!({ "anyOf": [many, one] })
}
