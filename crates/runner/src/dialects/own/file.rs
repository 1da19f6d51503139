//! Syntax of configuration files: keys of all torchao versions, and our own.

use super::axes::{AxisValues, some_grids, some_grids_schema};
use super::programs::ForeignPrograms;
use crate::dialects::names::ModelName;
use crate::entries::{CompileMode, DeviceSelection, HumanDuration, Timing};
use crate::mock::MockRule;
use calorimeter_case::{Implementation, Regime};
use calorimeter_recipes::{Element, Recipe, Sparsity};
use calorimeter_shapes::ShapeEntry;
use calorimeter_zoo::operators::presets::Preset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Benchmark mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BenchmarkMode {
    /// Forward passes.
    #[default]
    Inference,
    /// Forward, backward and optimizer passes.
    Training,
}

/// Scaling of an operand in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OperandScaling {
    /// Scaled dynamically.
    Dynamic,
    /// Not scaled; keeps its dtype.
    Disabled,
}

/// Scaling granularity in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScalingGranularity {
    /// Single scale per tensor.
    Tensorwise,
    /// Separate scale per row along the reduction dimension.
    #[serde(alias = "columnwise", alias = "axiswise")]
    Rowwise,
}

/// Optimizer in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Optimizer {
    /// AdamW with moments in f32.
    #[default]
    Adamw,
    /// Stochastic gradient descent without momentum.
    Sgd,
}

/// Declares the keys that are allowed at the top of a file, as defaults, and in each of its models.
macro_rules! shared_keys {
    ($($(#[$meta:meta])* $key:ident: $type:ty,)+) => {
        /// Entry of `models`: a model at several shapes.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(
            deny_unknown_fields,
            default,
            expecting = "a map such as {model: linear, shapes: [[1, 2048, 8192]]}"
        )]
        pub(crate) struct ModelEntry {
            /// Name of the cases in tables and in torchao's CSV.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub name: Option<String>,
            /// Shapes such as [1, 2048, 8192], and shape generators.
            #[serde(alias = "matrix_shapes", skip_serializing_if = "Option::is_none")]
            pub shapes: Option<Vec<ShapeEntry>>,
            /// Sizes of an operator: values per axis, in all combinations; instead of shapes.
            #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_grids")]
            #[schemars(schema_with = "some_grids_schema")]
            pub axes: Option<Vec<AxisValues>>,
            /// Preset sizes: quick, guide, full or llm; instead of shapes.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(with = "Option<String>")]
            pub preset: Option<Preset>,
            /// External programs instead of a model: commands, shared libraries, CUDA C++ kernels.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub foreign: Option<ForeignPrograms>,
            $($(#[$meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<$type>,)+
        }

        impl ModelEntry {
            /// Returns these keys with the ones that `over` sets replaced.
            pub(crate) fn overwrite(self, over: &Self) -> Self {
                Self {
                    name: over.name.clone().or(self.name),
                    shapes: over.shapes.clone().or(self.shapes),
                    axes: over.axes.clone().or(self.axes),
                    preset: over.preset.or(self.preset),
                    foreign: over.foreign.clone().or(self.foreign),
                    timing: Some(self.timing.unwrap_or_default().overwrite(&over.timing.unwrap_or_default())),
                    ..Self { $($key: over.$key.clone().or(self.$key),)+ ..Self::default() }
                }
            }
        }

        /// Configuration file of `calorimeter run`.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default, expecting = "a map with keys such as recipes and models")]
        pub(crate) struct File {
            /// `inference`, or `training` to measure the passes of a training step.
            #[serde(alias = "benchmark_mode")]
            pub mode: BenchmarkMode,
            /// Quantization recipes, each compared with the baseline.
            #[serde(alias = "quantization_config_recipe_names", alias = "quantizations")]
            pub recipes: Vec<Recipe>,
            /// Sparsities, combined with the recipes that support them.
            #[serde(alias = "sparsity_config_recipe_names")]
            pub sparsities: Vec<Option<Sparsity>>,
            /// Output folder.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub output_dir: Option<String>,
            /// Models: a list, or a single map.
            #[serde(alias = "model_params", deserialize_with = "one_or_many")]
            #[schemars(schema_with = "one_or_many_schema")]
            pub models: Vec<ModelEntry>,
            /// Training: scaling of the input; `disabled` keeps its dtype.
            #[serde(skip_serializing)]
            pub scaling_type_input: Option<OperandScaling>,
            /// Training: scaling of the weight; `disabled` keeps its dtype.
            #[serde(skip_serializing)]
            pub scaling_type_weight: Option<OperandScaling>,
            /// Training: scaling of the output gradient; `disabled` keeps its dtype.
            #[serde(skip_serializing)]
            pub scaling_type_grad_output: Option<OperandScaling>,
            /// Training: scaling granularity; must agree with the recipes.
            #[serde(skip_serializing)]
            pub scaling_granularity: Option<ScalingGranularity>,
            /// Training: optimizer (adamw).
            #[serde(skip_serializing, alias = "optimiser")]
            pub optimizer: Option<Optimizer>,
            /// Training: fast accumulation, i.e. partial sums stay in the accumulators of the tensor cores (`native`).
            #[serde(skip_serializing)]
            pub use_fast_accum: Option<bool>,
            /// Training: accepted without effect.
            #[serde(skip_serializing)]
            pub repeat_n: Option<u64>,
            $($(#[$meta])* #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<$type>,)+
        }

        impl File {
            /// Defaults of the models.
            pub(crate) fn defaults(&self) -> ModelEntry {
                ModelEntry { $($key: self.$key.clone(),)+ ..ModelEntry::default() }
            }
        }
    };
}

shared_keys! {
    /// Dtype of the unquantized model, or of the inputs of an operator (bf16).
    #[serde(alias = "high_precision_dtype", alias = "precision")]
    dtype: Element,
    /// Dtype of the outputs of an operator, if it supports several.
    output_dtype: Element,
    /// Model or operator (linear).
    #[serde(alias = "model_type")]
    model: ModelName,
    /// Device (auto).
    device: DeviceSelection,
    /// Implementations; default: set by `torch_compile_mode`, otherwise eager, and fused if it exists; native in builds without burn on the device.
    implementations: Vec<Implementation>,
    /// torch compile mode: default selects eager and fused, max-autotune selects all implementations.
    #[serde(alias = "compile")]
    torch_compile_mode: CompileMode,
    /// false selects eager only.
    use_torch_compile: bool,
    /// Timing modes; each one makes separate cases (device-cold).
    regimes: Vec<Regime>,
    /// Write a trace of each case for ui.perfetto.dev, and a table of its kernels.
    enable_profiler: bool,
    /// Profile the memory of each case; write snapshots and a page.
    enable_memory_profiler: bool,
    /// Also time single launches, for their 50th, 95th and 99th percentiles.
    percentiles: bool,
    /// Measure the peak memory of each case without writing files.
    peak_memory: bool,
    /// Measuring time and precision.
    timing: Timing,
    /// Time limit of a case, including autotuning (300s).
    timeout: HumanDuration,
    /// Seed of inputs and weights (42).
    seed: u64,
    /// Rules of the mock device; the first rule that matches a case's id applies.
    mock: Vec<MockRule>,
}

/// torchao's documentation shows one map where its code expects a list.
fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<ModelEntry>, D::Error> {
    struct ModelsVisitor;
    impl<'de> serde::de::Visitor<'de> for ModelsVisitor {
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
    deserializer.deserialize_any(ModelsVisitor)
}

fn one_or_many_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let (one, many) = (generator.subschema_for::<ModelEntry>(), generator.subschema_for::<Vec<ModelEntry>>());
    schemars::json_schema!({ "anyOf": [many, one] })
}
