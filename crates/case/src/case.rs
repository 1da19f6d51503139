//! Cases: one planned measurement each.

use crate::record::{Column, Field, columns, fields};
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
    /// JSON of the workload in a data set of flashinfer-bench, for the traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flashinfer_workload: Option<String>,
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
            flashinfer_workload: None,
        }
    }
}

/// Outputs requested by a config file of accelerator-microbenchmarks, or by the command line of a suite.
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
    /// Benchmark of a file of version 2 with its parameters, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub benchmark: Option<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Case {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |case|
        "id": Text(Some(&case.id)),
            "`mode/workload/recipe[+sparsity]/implementation/device/dtype/shape[/regime]`, the regime if it is not `device-cold`; with `#2` if the plan has it twice";
        "mode": Text(Some(case.mode.name())), "`inference`; for operators the name of their suite; `foreign`";
        "name": Text(Some(case.name.as_str()).filter(|name| !name.is_empty())), "name of the config entry";
        "workload": Text(Some(case.workload.as_str())), "model or operator";
        "recipe": Text(Some(case.recipe.as_str())), "`baseline`, `int8wo`, …";
        "sparsity": Text(case.sparsity.map(Name::as_str)), "`semi-sparse`, `block-0.9-64`";
        "implementation": Text(Some(case.implementation.name().as_str())),
            "`eager`, `fused`, `cube`, `native`, or the name of an [external program](foreign.md)";
        "device": Written(Some(case.device.to_string())), "with its index: `cuda:0`";
        "dtype": Written(Some(case.element.to_string())),
            "`f32`, `f16`, `bf16`; for some operators also `e4m3` and other input types";
        "output_dtype": Written(case.output.map(|output| output.to_string())),
            "dtype of the outputs, if it can be chosen";
        "shape_name": Text(Some(&case.shape_name)), "name given by the shape generator";
        "m" from "shape.m": Count(case.shape.get("m")), "rows of the input, if the shape has this axis";
        "k" from "shape.k": Count(case.shape.get("k")), "input features";
        "n" from "shape.n": Count(case.shape.get("n")), "output features";
        "shape": Written(Some(case.shape.to_string())),
            "all axes by name; as a column `m1024-k512-n256`, in the record an object";
        "regime": Written(Some(case.regime.to_string())), "timing mode: see [Method](method.md#regimes)";
        "flops" in "operations": Count(case.flops), "floating-point operations of one pass";
        "bytes" in "bytes": Count(case.bytes),
            "minimum traffic of one pass; absent if the recipe does not exist in this dtype or without a sparsity";
        "published_flops" from "published.flops" in "operations": Count(case.published.as_ref()?.flops),
            "operations as counted by another benchmark that publishes results for this computation, if its count differs";
        "published_bytes" from "published.bytes" in "bytes": Count(case.published.as_ref()?.bytes),
            "bytes as counted by another benchmark, if its count differs";
        "unfused_bytes" from "fusion.unfused_bytes" in "bytes":
            Count(case.fusion.as_ref().map(|model| model.unfused_bytes)),
            "minimum traffic of a fusion pattern with one kernel per operator";
        "fused_bytes" from "fusion.fused_bytes" in "bytes": Count(case.fusion.as_ref().map(|model| model.fused_bytes)),
            "minimum traffic of a fusion pattern with a single kernel";
        "memory_bytes" in "bytes": Count(case.memory_bytes),
            "estimated memory with one buffer set; absent if `bytes` is";
        "scaling": Text(case.scaling.map(Name::as_str)), "granularity of the scales, for layers trained in float8";
    };

    /// Columns for the requests of the config entry; they follow the traffic columns.
    pub const REQUEST_COLUMNS: &'static [Column<Self>] = columns! { |case|
        "implied": Flag(Some(case.implied)),
            "a baseline added for comparison, not requested; in the record absent if false";
        "compile_mode": Text(case.compile_mode.as_deref()), "`torch.compile` mode in the config file";
        "profiler": Flag(Some(case.profiler)), "a trace was requested; in the record absent if false";
        "memory_profiler": Flag(Some(case.memory_profiler)),
            "a memory profile was requested; in the record absent if false";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "tokens": "whole number", "rows (tokens) of a training pass";
        "percentiles": "true, or absent", "percentiles of single launches were requested";
        "peak_memory": "true, or absent", "memory peaks only were requested";
        "export.entry": "whole number",
            "for files of accelerator-microbenchmarks, and with `--export`: index of the entry";
        "export.csv_path": "path", "folder of the table, as written in the config";
        "export.metrics_dir": "path", "folder of `metrics_report.jsonl`, as written in the config";
        "export.benchmark": "text", "JSON of the benchmark of an accelerator-microbenchmarks file, version 2";
        "flashinfer_workload": "text", "JSON of the workload in a data set of flashinfer-bench";
        "fusion.operators": "list of text", "operators of a fusion pattern, one name per separate kernel";
    };
}
