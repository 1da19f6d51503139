//! What is to be measured.

use crate::{Axes, CaseId, Counts, Device, Dtype, Element, FusionModel, Implementation, Mode, Name, Regime};
use serde::{Deserialize, Serialize};

/// What is to be measured: the identity of a case and the facts known before it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Readable and unique within a run, e.g. `inference/linear/int8wo/fused/cuda:0/bf16/m1024-k1024-n1024`.
    pub id: CaseId,
    /// `inference`, `training`, …
    pub mode: Mode,
    /// The name of the config entry that asked for the case; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which computation: `linear`, `ln_linear_relu`, …
    pub workload: Name,
    /// Which arithmetic: `baseline`, `int8wo`, …
    pub recipe: Name,
    /// The sparsity laid over the recipe, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparsity: Option<Name>,
    /// Which kernels: `eager`, `fused`, `cube`, `native`.
    pub implementation: Implementation,
    /// The device with its index, e.g. `cuda:0`.
    pub device: Device,
    /// The high-precision type, in short: `bf16`, `f16`, `f32`.
    #[serde(rename = "dtype")]
    pub element: Element,
    /// The number type of the outputs, where that was a choice.
    #[serde(rename = "output_dtype", default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Element>,
    /// The name that the shape generator gave the shape, e.g. `llama_ffn.w2`.
    pub shape_name: String,
    /// The named axes, e.g. m, k and n.
    pub shape: Axes,
    /// What the time means: `device-cold`, `host-e2e`, …
    pub regime: Regime,
    /// Floating-point operations of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<u64>,
    /// Bytes that one run must move at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What another program that publishes figures for this computation counts, where it counts otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Box<Counts>>,
    /// What fusing the computation should save, for patterns that are worth fusing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion: Option<Box<FusionModel>>,
    /// Estimate of the device memory that the case needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// A baseline that nobody listed, added because the other cases are compared with it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub implied: bool,
    /// The `torch.compile` mode of the config entry, kept for the torchao-compatible CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_mode: Option<String>,
    /// The config entry asks for a trace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub profiler: bool,
    /// The config entry asks for a memory profile.
    #[serde(default, skip_serializing_if = "is_false")]
    pub memory_profiler: bool,
    /// The config entry asks for percentiles of single launches.
    #[serde(default, skip_serializing_if = "is_false")]
    pub percentiles: bool,
    /// The config entry asks for the peaks of memory alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub peak_memory: bool,
    /// Where the program that the file was written for wants its own formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<Box<Export>>,
}

impl Case {
    /// What every other recipe is compared with.
    pub const BASELINE: Name = Name::new("baseline");

    /// Whether nothing is quantised or pruned.
    pub fn is_baseline(&self) -> bool {
        self.recipe == Self::BASELINE && self.sparsity.is_none()
    }

    /// The recipe with the sparsity laid over it, e.g. `int8wo+semi-sparse`.
    pub fn variant(&self) -> String {
        match self.sparsity {
            Some(sparsity) => format!("{}+{sparsity}", self.recipe),
            None => self.recipe.to_string(),
        }
    }
}

/// A forward pass of nothing, unquantised, on the processor: for struct update syntax.
impl Default for Case {
    fn default() -> Self {
        Self {
            id: CaseId::default(),
            mode: Mode::default(),
            name: String::new(),
            workload: Name::default(),
            recipe: Self::BASELINE,
            sparsity: None,
            implementation: Implementation::Eager,
            device: Device::Cpu,
            element: Element::Float(Dtype::F32),
            output: None,
            shape_name: String::new(),
            shape: Axes::default(),
            regime: Regime::default(),
            flops: None,
            bytes: None,
            published: None,
            fusion: None,
            memory_bytes: None,
            implied: false,
            compile_mode: None,
            profiler: false,
            memory_profiler: false,
            percentiles: false,
            peak_memory: false,
            export: None,
        }
    }
}

/// What a file of accelerator-microbenchmarks says of its results, or the command line of a suite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// The position of the case's entry among those of the run: each has files of its own.
    pub entry: u32,
    /// The folder of its table, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv_path: Option<String>,
    /// The folder of its `metrics_report.jsonl`, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_dir: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}
