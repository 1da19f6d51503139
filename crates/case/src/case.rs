//! What is to be measured.

use crate::record::{Column, Field, Read};
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
    /// What shares a scale while a layer is trained, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Name>,
    /// Which kernels: `eager`, `fused`, `cube`, `native`, or the name of a program that is not ours.
    #[serde(deserialize_with = "Implementation::read_recorded")]
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
    /// Rows that a pass of training is given, each a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
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

    /// Whether nothing is quantized or pruned.
    pub fn is_baseline(&self) -> bool {
        self.recipe == Self::BASELINE && self.sparsity.is_none()
    }

    /// Bytes of one buffer set, where it has any: all that work of others is given, the least traffic of everything else.
    pub fn set_bytes(&self) -> Option<u64> {
        if self.mode.is_foreign() { self.memory_bytes } else { self.bytes }
    }

    /// The recipe with the sparsity laid over it, e.g. `int8wo+semi-sparse`.
    pub fn variant(&self) -> String {
        variant(self.recipe, self.sparsity)
    }
}

/// A recipe with the sparsity laid over it, as people read it: `int8wo+semi-sparse`.
pub fn variant(recipe: Name, sparsity: Option<Name>) -> String {
    match sparsity {
        Some(sparsity) => format!("{recipe}+{sparsity}"),
        None => recipe.to_string(),
    }
}

/// A forward pass of nothing, unquantized, on the processor: for struct update syntax.
impl Default for Case {
    fn default() -> Self {
        Self {
            id: CaseId::default(),
            mode: Mode::default(),
            name: String::new(),
            workload: Name::default(),
            recipe: Self::BASELINE,
            sparsity: None,
            scaling: None,
            implementation: Implementation::Eager,
            device: Device::Cpu,
            element: Element::Float(Dtype::F32),
            output: None,
            shape_name: String::new(),
            shape: Axes::default(),
            regime: Regime::default(),
            tokens: None,
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

impl Case {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "id",
            field: "id",
            unit: "",
            doc: "`mode/workload/recipe[+sparsity]/implementation/device/dtype/shape[/regime]`, the regime if it is not `device-cold`; with `#2` if the plan has it twice",
            read: Read::Text(|case| Some(&case.id)),
        },
        Column {
            name: "mode",
            field: "mode",
            unit: "",
            doc: "`inference`; for operators the name of their suite; `foreign`",
            read: Read::Text(|case| Some(case.mode.name())),
        },
        Column {
            name: "name",
            field: "name",
            unit: "",
            doc: "the entry's name",
            read: Read::Text(|case| Some(case.name.as_str()).filter(|name| !name.is_empty())),
        },
        Column {
            name: "workload",
            field: "workload",
            unit: "",
            doc: "the model or the operator",
            read: Read::Text(|case| Some(case.workload.as_str())),
        },
        Column {
            name: "recipe",
            field: "recipe",
            unit: "",
            doc: "the arithmetic: `baseline`, `int8wo`, …",
            read: Read::Text(|case| Some(case.recipe.as_str())),
        },
        Column {
            name: "sparsity",
            field: "sparsity",
            unit: "",
            doc: "`semi-sparse`, `block-0.9-64`",
            read: Read::Text(|case| case.sparsity.map(Name::as_str)),
        },
        Column {
            name: "implementation",
            field: "implementation",
            unit: "",
            doc: "`eager`, `fused`, `cube`, `native`, or the name of a [program that is not ours](foreign.md)",
            read: Read::Text(|case| Some(case.implementation.name().as_str())),
        },
        Column {
            name: "device",
            field: "device",
            unit: "",
            doc: "with its index: `cuda:0`",
            read: Read::Written(|case| Some(case.device.to_string())),
        },
        Column {
            name: "dtype",
            field: "dtype",
            unit: "",
            doc: "`f32`, `f16`, `bf16`; of some operators also `e4m3` and other types of inputs",
            read: Read::Written(|case| Some(case.element.to_string())),
        },
        Column {
            name: "output_dtype",
            field: "output_dtype",
            unit: "",
            doc: "the number type of the outputs, where that was a choice",
            read: Read::Written(|case| case.output.map(|output| output.to_string())),
        },
        Column {
            name: "shape_name",
            field: "shape_name",
            unit: "",
            doc: "the generator's name for the shape",
            read: Read::Text(|case| Some(&case.shape_name)),
        },
        Column {
            name: "m",
            field: "shape.m",
            unit: "",
            doc: "rows of the input, where the shape has this axis",
            read: Read::Count(|case| case.shape.get("m")),
        },
        Column {
            name: "k",
            field: "shape.k",
            unit: "",
            doc: "input features",
            read: Read::Count(|case| case.shape.get("k")),
        },
        Column {
            name: "n",
            field: "shape.n",
            unit: "",
            doc: "output features",
            read: Read::Count(|case| case.shape.get("n")),
        },
        Column {
            name: "shape",
            field: "shape",
            unit: "",
            doc: "all axes by name; as a column `m1024-k512-n256`, in the record an object",
            read: Read::Written(|case| Some(case.shape.to_string())),
        },
        Column {
            name: "regime",
            field: "regime",
            unit: "",
            doc: "what the time means: see [Method](method.md#regimes)",
            read: Read::Written(|case| Some(case.regime.to_string())),
        },
        Column {
            name: "flops",
            field: "flops",
            unit: "operations",
            doc: "of one pass",
            read: Read::Count(|case| case.flops),
        },
        Column {
            name: "bytes",
            field: "bytes",
            unit: "bytes",
            doc: "least traffic of one pass; absent if the recipe does not exist in this dtype or without a sparsity",
            read: Read::Count(|case| case.bytes),
        },
        Column {
            name: "published_flops",
            field: "published.flops",
            unit: "operations",
            doc: "what another program that publishes figures for this computation counts, where it counts otherwise",
            read: Read::Count(|case| case.published.as_ref()?.flops),
        },
        Column {
            name: "published_bytes",
            field: "published.bytes",
            unit: "bytes",
            doc: "the same of its bytes",
            read: Read::Count(|case| case.published.as_ref()?.bytes),
        },
        Column {
            name: "unfused_bytes",
            field: "fusion.unfused_bytes",
            unit: "bytes",
            doc: "least traffic of a pattern of fusion when each of its operators is a kernel of its own",
            read: Read::Count(|case| case.fusion.as_ref().map(|model| model.unfused_bytes)),
        },
        Column {
            name: "fused_bytes",
            field: "fusion.fused_bytes",
            unit: "bytes",
            doc: "the same when all of them are one kernel",
            read: Read::Count(|case| case.fusion.as_ref().map(|model| model.fused_bytes)),
        },
        Column {
            name: "memory_bytes",
            field: "memory_bytes",
            unit: "bytes",
            doc: "estimate of the memory needed with one buffer set; absent as `bytes` is",
            read: Read::Count(|case| case.memory_bytes),
        },
        Column {
            name: "scaling",
            field: "scaling",
            unit: "",
            doc: "of layers that are trained in float8: what shares a scale",
            read: Read::Text(|case| case.scaling.map(Name::as_str)),
        },
    ];

    /// Why it is there and what else was asked of it: in tables after the traffic.
    pub const REQUESTS: &'static [Column<Self>] = &[
        Column {
            name: "implied",
            field: "implied",
            unit: "",
            doc: "a baseline that nobody listed; in the record absent if false",
            read: Read::Flag(|case| Some(case.implied)),
        },
        Column {
            name: "compile_mode",
            field: "compile_mode",
            unit: "",
            doc: "torch's word in the file",
            read: Read::Text(|case| case.compile_mode.as_deref()),
        },
        Column {
            name: "profiler",
            field: "profiler",
            unit: "",
            doc: "a trace was asked for; in the record absent if false",
            read: Read::Flag(|case| Some(case.profiler)),
        },
        Column {
            name: "memory_profiler",
            field: "memory_profiler",
            unit: "",
            doc: "the memory was to be followed; in the record absent if false",
            read: Read::Flag(|case| Some(case.memory_profiler)),
        },
    ];

    /// Its fields that no column shows.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field { name: "tokens", kind: "whole number", doc: "rows that a pass of training is given, each a token" },
        Field { name: "percentiles", kind: "true, or absent", doc: "percentiles of single launches were asked for" },
        Field { name: "peak_memory", kind: "true, or absent", doc: "the peaks of memory alone were asked for" },
        Field {
            name: "export.entry",
            kind: "whole number",
            doc: "for files of accelerator-microbenchmarks, and with `--export`: which of the entries",
        },
        Field { name: "export.csv_path", kind: "path", doc: "the folder of its table, as it is written" },
        Field {
            name: "export.metrics_dir",
            kind: "path",
            doc: "the folder of its `metrics_report.jsonl`, as it is written",
        },
        Field {
            name: "fusion.operators",
            kind: "list of text",
            doc: "what a pattern of fusion fuses, one name for each separate kernel",
        },
    ];
}
