//! Cases: one planned measurement each.

use crate::record::{CellReader, Column, Field};
use crate::{Axes, CaseId, Device, Dtype, Element, FusionModel, Implementation, Mode, Name, PublishedCounts, Regime};
use serde::{Deserialize, Serialize};

/// Planned measurement: its identity and the facts known before it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Readable id, unique within a run, e.g. `inference/linear/int8wo/fused/cuda:0/bf16/m1024-k1024-n1024`.
    pub id: CaseId,
    /// `inference`, `training` or the suite of an operator.
    pub mode: Mode,
    /// Name of the config entry that requested the case; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Model or operator: `linear`, `ln_linear_relu`, …
    pub workload: Name,
    /// Recipe: `baseline`, `int8wo`, …
    pub recipe: Name,
    /// Sparsity that is combined with the recipe, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparsity: Option<Name>,
    /// Granularity of the scales in float8 training, if the layer is trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Name>,
    /// `eager`, `fused`, `cube`, `native`, or the name of a registered or external implementation.
    #[serde(deserialize_with = "Implementation::read_recorded")]
    pub implementation: Implementation,
    /// Device with its index, e.g. `cuda:0`.
    pub device: Device,
    /// High-precision dtype: `bf16`, `f16`, `f32`.
    #[serde(rename = "dtype")]
    pub element: Element,
    /// Dtype of the outputs, if it can be chosen.
    #[serde(rename = "output_dtype", default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Element>,
    /// Name that the shape generator gave the shape, e.g. `llama_ffn.w2`.
    pub shape_name: String,
    /// Named axes, e.g. m, k and n.
    pub shape: Axes,
    /// Timing mode: `device-cold`, `host-e2e`, …
    pub regime: Regime,
    /// Rows (tokens) of one training pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Floating-point operations of one pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<u64>,
    /// Minimum memory traffic of one pass, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// FLOPs and bytes as counted by another benchmark that publishes results for this computation, if its counts
    /// differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Box<PublishedCounts>>,
    /// Modeled savings of fusion, for fusion patterns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion: Option<Box<FusionModel>>,
    /// Estimated device memory of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// True for a baseline that was not requested but added because other cases are compared with it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub implied: bool,
    /// `torch.compile` mode of the config entry, copied to the torchao-compatible CSV.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_mode: Option<String>,
    /// The config entry requests a trace.
    #[serde(default, skip_serializing_if = "is_false")]
    pub profiler: bool,
    /// The config entry requests a memory profile.
    #[serde(default, skip_serializing_if = "is_false")]
    pub memory_profiler: bool,
    /// The config entry requests percentiles of single launches.
    #[serde(default, skip_serializing_if = "is_false")]
    pub percentiles: bool,
    /// The config entry requests memory peaks only.
    #[serde(default, skip_serializing_if = "is_false")]
    pub peak_memory: bool,
    /// Output folders in the formats of the benchmark that the config file was written for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<Box<Export>>,
}

impl Case {
    /// Recipe that all other recipes are compared with.
    pub const BASELINE: Name = Name::new("baseline");

    /// True if nothing is quantized or pruned.
    pub fn is_baseline(&self) -> bool {
        self.recipe == Self::BASELINE && self.sparsity.is_none()
    }

    /// Bytes of one buffer set: all memory of a foreign case, otherwise the minimum traffic. `None` if unknown.
    pub fn buffer_set_bytes(&self) -> Option<u64> {
        if self.mode.is_foreign() { self.memory_bytes } else { self.bytes }
    }

    /// Recipe with its sparsity, e.g. `int8wo+semi-sparse`.
    pub fn variant(&self) -> String {
        variant(self.recipe, self.sparsity)
    }
}

/// Formats a recipe with its sparsity: `int8wo+semi-sparse`.
pub fn variant(recipe: Name, sparsity: Option<Name>) -> String {
    match sparsity {
        Some(sparsity) => format!("{recipe}+{sparsity}"),
        None => recipe.to_string(),
    }
}

/// An unquantized forward pass of an unnamed workload on the CPU, for struct update syntax.
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

/// Output folders requested by a config file of accelerator-microbenchmarks, or by the command line of a suite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Index of the case's entry within the run; each entry has its own files.
    pub entry: u32,
    /// Folder of the entry's table, as written in the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv_path: Option<String>,
    /// Folder of the entry's `metrics_report.jsonl`, as written in the config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_dir: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Case {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "id",
            field: "id",
            unit: "",
            doc: "`mode/workload/recipe[+sparsity]/implementation/device/dtype/shape[/regime]`, the regime if it is not `device-cold`; with `#2` if the plan has it twice",
            read: CellReader::Text(|case| Some(&case.id)),
        },
        Column {
            name: "mode",
            field: "mode",
            unit: "",
            doc: "`inference`; for operators the name of their suite; `foreign`",
            read: CellReader::Text(|case| Some(case.mode.name())),
        },
        Column {
            name: "name",
            field: "name",
            unit: "",
            doc: "name of the config entry",
            read: CellReader::Text(|case| Some(case.name.as_str()).filter(|name| !name.is_empty())),
        },
        Column {
            name: "workload",
            field: "workload",
            unit: "",
            doc: "model or operator",
            read: CellReader::Text(|case| Some(case.workload.as_str())),
        },
        Column {
            name: "recipe",
            field: "recipe",
            unit: "",
            doc: "`baseline`, `int8wo`, …",
            read: CellReader::Text(|case| Some(case.recipe.as_str())),
        },
        Column {
            name: "sparsity",
            field: "sparsity",
            unit: "",
            doc: "`semi-sparse`, `block-0.9-64`",
            read: CellReader::Text(|case| case.sparsity.map(Name::as_str)),
        },
        Column {
            name: "implementation",
            field: "implementation",
            unit: "",
            doc: "`eager`, `fused`, `cube`, `native`, or the name of an [external program](foreign.md)",
            read: CellReader::Text(|case| Some(case.implementation.name().as_str())),
        },
        Column {
            name: "device",
            field: "device",
            unit: "",
            doc: "with its index: `cuda:0`",
            read: CellReader::Written(|case| Some(case.device.to_string())),
        },
        Column {
            name: "dtype",
            field: "dtype",
            unit: "",
            doc: "`f32`, `f16`, `bf16`; for some operators also `e4m3` and other input types",
            read: CellReader::Written(|case| Some(case.element.to_string())),
        },
        Column {
            name: "output_dtype",
            field: "output_dtype",
            unit: "",
            doc: "dtype of the outputs, if it can be chosen",
            read: CellReader::Written(|case| case.output.map(|output| output.to_string())),
        },
        Column {
            name: "shape_name",
            field: "shape_name",
            unit: "",
            doc: "name given by the shape generator",
            read: CellReader::Text(|case| Some(&case.shape_name)),
        },
        Column {
            name: "m",
            field: "shape.m",
            unit: "",
            doc: "rows of the input, if the shape has this axis",
            read: CellReader::Count(|case| case.shape.get("m")),
        },
        Column {
            name: "k",
            field: "shape.k",
            unit: "",
            doc: "input features",
            read: CellReader::Count(|case| case.shape.get("k")),
        },
        Column {
            name: "n",
            field: "shape.n",
            unit: "",
            doc: "output features",
            read: CellReader::Count(|case| case.shape.get("n")),
        },
        Column {
            name: "shape",
            field: "shape",
            unit: "",
            doc: "all axes by name; as a column `m1024-k512-n256`, in the record an object",
            read: CellReader::Written(|case| Some(case.shape.to_string())),
        },
        Column {
            name: "regime",
            field: "regime",
            unit: "",
            doc: "timing mode: see [Method](method.md#regimes)",
            read: CellReader::Written(|case| Some(case.regime.to_string())),
        },
        Column {
            name: "flops",
            field: "flops",
            unit: "operations",
            doc: "floating-point operations of one pass",
            read: CellReader::Count(|case| case.flops),
        },
        Column {
            name: "bytes",
            field: "bytes",
            unit: "bytes",
            doc: "minimum traffic of one pass; absent if the recipe does not exist in this dtype or without a sparsity",
            read: CellReader::Count(|case| case.bytes),
        },
        Column {
            name: "published_flops",
            field: "published.flops",
            unit: "operations",
            doc: "operations as counted by another benchmark that publishes results for this computation, if its count differs",
            read: CellReader::Count(|case| case.published.as_ref()?.flops),
        },
        Column {
            name: "published_bytes",
            field: "published.bytes",
            unit: "bytes",
            doc: "bytes as counted by another benchmark, if its count differs",
            read: CellReader::Count(|case| case.published.as_ref()?.bytes),
        },
        Column {
            name: "unfused_bytes",
            field: "fusion.unfused_bytes",
            unit: "bytes",
            doc: "minimum traffic of a fusion pattern with one kernel per operator",
            read: CellReader::Count(|case| case.fusion.as_ref().map(|model| model.unfused_bytes)),
        },
        Column {
            name: "fused_bytes",
            field: "fusion.fused_bytes",
            unit: "bytes",
            doc: "minimum traffic of a fusion pattern with a single kernel",
            read: CellReader::Count(|case| case.fusion.as_ref().map(|model| model.fused_bytes)),
        },
        Column {
            name: "memory_bytes",
            field: "memory_bytes",
            unit: "bytes",
            doc: "estimated memory with one buffer set; absent if `bytes` is",
            read: CellReader::Count(|case| case.memory_bytes),
        },
        Column {
            name: "scaling",
            field: "scaling",
            unit: "",
            doc: "granularity of the scales, for layers trained in float8",
            read: CellReader::Text(|case| case.scaling.map(Name::as_str)),
        },
    ];

    /// Columns for the requests of the config entry; they follow the traffic columns.
    pub const REQUEST_COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "implied",
            field: "implied",
            unit: "",
            doc: "a baseline added for comparison, not requested; in the record absent if false",
            read: CellReader::Flag(|case| Some(case.implied)),
        },
        Column {
            name: "compile_mode",
            field: "compile_mode",
            unit: "",
            doc: "`torch.compile` mode in the config file",
            read: CellReader::Text(|case| case.compile_mode.as_deref()),
        },
        Column {
            name: "profiler",
            field: "profiler",
            unit: "",
            doc: "a trace was requested; in the record absent if false",
            read: CellReader::Flag(|case| Some(case.profiler)),
        },
        Column {
            name: "memory_profiler",
            field: "memory_profiler",
            unit: "",
            doc: "a memory profile was requested; in the record absent if false",
            read: CellReader::Flag(|case| Some(case.memory_profiler)),
        },
    ];

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field { name: "tokens", kind: "whole number", doc: "rows (tokens) of a training pass" },
        Field { name: "percentiles", kind: "true, or absent", doc: "percentiles of single launches were requested" },
        Field { name: "peak_memory", kind: "true, or absent", doc: "memory peaks only were requested" },
        Field {
            name: "export.entry",
            kind: "whole number",
            doc: "for files of accelerator-microbenchmarks, and with `--export`: index of the entry",
        },
        Field { name: "export.csv_path", kind: "path", doc: "folder of the table, as written in the config" },
        Field {
            name: "export.metrics_dir",
            kind: "path",
            doc: "folder of `metrics_report.jsonl`, as written in the config",
        },
        Field {
            name: "fusion.operators",
            kind: "list of text",
            doc: "operators of a fusion pattern, one name per separate kernel",
        },
    ];
}
