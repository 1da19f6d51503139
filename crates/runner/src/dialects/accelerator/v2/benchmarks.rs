//! Benchmarks of accelerator-microbenchmarks version 2, and the operator that measures each case.

use super::parameters::{CaseParameters, NamedParameter, ParameterDefault};
use crate::entries::word;
use ParameterDefault::{Dtype as DtypeName, Flag, Integer, Number, Text, Word};
use calorimeter_case::UnknownName;
use calorimeter_recipes::{Dtype, Element};
use std::fmt;
use std::str::FromStr;

/// Benchmark with its parameters.
#[derive(Debug)]
pub(super) struct BenchmarkDefinition {
    /// Name in files.
    pub name: &'static str,
    /// Name in results.
    pub class: &'static str,
    /// Parameters besides the general ones, in the order of results.
    pub parameters: &'static [NamedParameter],
    /// Selects the operator for a case.
    pub lower: fn(&CaseParameters) -> LoweredCase,
}

/// Operator that measures a case.
pub(super) struct LoweredCase {
    pub operator: &'static str,
    pub element: Element,
    pub output: Option<Element>,
    pub sizes: Vec<SizeParameter>,
    /// Number of devices, if it is not the number of GPUs.
    pub devices: Option<u64>,
}

/// Parameter that determines an axis of the operator.
pub(super) struct SizeParameter {
    pub parameter: &'static str,
    pub axis: &'static str,
    /// Size of the axis per unit of the parameter.
    pub factor: u64,
}

const BF16: Element = Element::Float(Dtype::Bf16);
const F32: Element = Element::Float(Dtype::F32);

impl LoweredCase {
    /// Operator in a dtype. `sizes` contains pairs of an axis and the parameter that is the size of the axis.
    fn new(operator: &'static str, element: Element, sizes: &[(&'static str, &'static str)]) -> Self {
        let size = |&(axis, parameter)| SizeParameter { parameter, axis, factor: 1 };
        Self { operator, element, output: None, sizes: sizes.iter().map(size).collect(), devices: None }
    }

    /// Operator whose axes have the names of the parameters.
    fn of_axes(operator: &'static str, element: Element, axes: &[&'static str]) -> Self {
        Self::new(operator, element, &axes.iter().map(|&axis| (axis, axis)).collect::<Vec<_>>())
    }
}

const MODE: NamedParameter = ("mode", Word(&["fwd", "bwd"]));
const ROWS: &[NamedParameter] = &[("dim", Integer(4096)), ("batch", Integer(1024)), MODE];
const SEED: NamedParameter = ("seed", Integer(0));
const COLLECTIVE: &[NamedParameter] = &[
    ("mesh_shape", Text(None)),
    ("sharding_strategy", Text(None)),
    ("matrix_dim", Integer(1024)),
    SEED,
    ("reduce_op", Word(&["sum", "mean", "max", "min"])),
];
const HOST_COPY: &[NamedParameter] = &[("data_size_mib", Integer(64))];

/// All benchmarks.
pub(super) static BENCHMARKS: [BenchmarkDefinition; 17] = [
    BenchmarkDefinition {
        name: "gemm_generalized",
        class: "GeneralizedGemmBenchmark",
        parameters: &[
            ("m", Integer(1024)),
            ("k", Integer(1024)),
            ("n", Integer(1024)),
            ("in_dtype", DtypeName("float8_e4m3fn")),
            ("out_dtype", DtypeName("bfloat16")),
            SEED,
            ("use_scaling_factors", Flag(false)),
            ("transpose_a", Flag(false)),
            ("transpose_b", Flag(false)),
            ("alpha", Number(1.0)),
            ("beta", Number(0.0)),
        ],
        lower: |case| {
            let transposed = case.flag("transpose_a") || case.flag("transpose_b");
            let operator = match case.flag("use_scaling_factors") {
                _ if transposed || case.number("alpha") != 1.0 || case.number("beta") != 0.0 => "gemm_generalized",
                true => "gemm",
                false => "gemm_simple_with_dtype",
            };
            let lowered = LoweredCase::of_axes(operator, case.element("in_dtype"), &["m", "k", "n"]);
            LoweredCase { output: Some(case.element("out_dtype")), ..lowered }
        },
    },
    BenchmarkDefinition {
        name: "hbm_bandwidth",
        class: "HBMBandwidthBenchmark",
        parameters: &[
            ("op_type", Word(&["copy", "scale", "add", "triad"])),
            ("size", Integer(1 << 27)),
            ("device_id", Integer(0)),
        ],
        lower: |case| {
            let operator = match (case.integer("device_id"), case.text("op_type")) {
                (0, "scale") => "stream_scale",
                (0, "add") => "stream_add",
                (0, "triad") => "stream_triad",
                (0, _) => "stream_copy",
                _ => return LoweredCase::of_axes("hbm_bandwidth", case.element("dtype"), &["size"]),
            };
            LoweredCase::new(operator, case.element("dtype"), &[("elements", "size")])
        },
    },
    BenchmarkDefinition {
        name: "attention_flashed",
        class: "AttentionBenchmark",
        parameters: &[
            MODE,
            ("causal", Flag(true)),
            ("batch", Integer(1)),
            ("seq_len", Integer(8192)),
            ("num_q_heads", Integer(56)),
            ("num_kv_heads", Integer(56)),
            ("head_dim", Integer(128)),
        ],
        lower: |case| {
            let element = case.element("dtype");
            if case.text("mode") == "bwd" || case.integer("num_q_heads") != case.integer("num_kv_heads") {
                let axes = ["batch", "seq_len", "num_q_heads", "num_kv_heads", "head_dim"];
                return LoweredCase::of_axes("attention_flashed", element, &axes);
            }
            let operator = if case.flag("causal") { "attention_causal" } else { "attention" };
            let sizes =
                [("batch", "batch"), ("heads", "num_q_heads"), ("sequence", "seq_len"), ("head_dim", "head_dim")];
            LoweredCase::new(operator, element, &sizes)
        },
    },
    BenchmarkDefinition {
        name: "swiglu",
        class: "SwiGLUBenchmark",
        parameters: ROWS,
        lower: |case| {
            let operator = if case.text("mode") == "bwd" { "swiglu_bwd" } else { "swiglu_fwd" };
            let mut lowered = LoweredCase::new(operator, BF16, &[("m", "batch"), ("n", "dim")]);
            // The input holds both halves of a row.
            lowered.sizes[1].factor = 2;
            lowered
        },
    },
    BenchmarkDefinition {
        name: "rmsnorm",
        class: "RMSNormBenchmark",
        parameters: ROWS,
        lower: |case| {
            let operator = if case.text("mode") == "bwd" { "rmsnorm_bwd" } else { "rmsnorm_fwd" };
            LoweredCase::new(operator, BF16, &[("m", "batch"), ("n", "dim")])
        },
    },
    BenchmarkDefinition {
        name: "sigmoid",
        class: "SigmoidBenchmark",
        parameters: ROWS,
        lower: |case| match case.text("mode") {
            "bwd" => LoweredCase::of_axes("sigmoid", BF16, &["batch", "dim"]),
            _ => LoweredCase::new("inference_sigmoid", BF16, &[("m", "batch"), ("n", "dim")]),
        },
    },
    BenchmarkDefinition {
        name: "rope",
        class: "RoPEBenchmark",
        parameters: &[
            ("seq_len", Integer(1024)),
            ("head_dim", Integer(128)),
            ("batch", Integer(32)),
            ("heads", Integer(32)),
        ],
        lower: |_| LoweredCase::of_axes("rope", F32, &["batch", "heads", "seq_len", "head_dim"]),
    },
    BenchmarkDefinition {
        name: "quantization",
        class: "QuantizationBenchmark",
        parameters: &[("m", Integer(4096)), ("n", Integer(4096))],
        lower: |_| LoweredCase::of_axes("quantization", BF16, &["m", "n"]),
    },
    BenchmarkDefinition {
        name: "simple_add",
        class: "AddBenchmark",
        parameters: &[("size", Integer(1 << 20))],
        lower: |_| LoweredCase::new("stream_add", BF16, &[("elements", "size")]),
    },
    BenchmarkDefinition {
        name: "transformer_layer_moe",
        class: "TransformerLayerMoE",
        parameters: &[
            ("model_dim", Integer(7168)),
            ("mslen", Integer(1024)),
            ("tp", Integer(1)),
            ("etp", Integer(1)),
            ("cp", Integer(1)),
            ("ep", Integer(1)),
        ],
        lower: |case| LoweredCase::of_axes("transformer_layer_moe", case.element("dtype"), &["model_dim", "mslen"]),
    },
    BenchmarkDefinition {
        name: "all_reduce",
        class: "AllReduceBenchmark",
        parameters: COLLECTIVE,
        lower: |case| {
            let operator = match case.text("reduce_op") {
                "mean" => "pmean",
                "max" => "pmax",
                "min" => "pmin",
                _ => "all_reduce",
            };
            LoweredCase::of_axes(operator, case.element("dtype"), &["matrix_dim"])
        },
    },
    BenchmarkDefinition {
        name: "all_gather",
        class: "AllGatherBenchmark",
        parameters: COLLECTIVE,
        lower: |case| LoweredCase::of_axes("all_gather", case.element("dtype"), &["matrix_dim"]),
    },
    BenchmarkDefinition {
        name: "all_to_all",
        class: "AllToAllBenchmark",
        parameters: COLLECTIVE,
        lower: |case| LoweredCase::of_axes("all_to_all", case.element("dtype"), &["matrix_dim"]),
    },
    BenchmarkDefinition {
        name: "reduce_scatter",
        class: "ReduceScatterBenchmark",
        parameters: COLLECTIVE,
        // Version 2 scatters matrix_dim * 256 elements per device, as `psum_scatter` does.
        lower: |case| LoweredCase::of_axes("psum_scatter", case.element("dtype"), &["matrix_dim"]),
    },
    // Host arrays of NumPy are pageable.
    BenchmarkDefinition {
        name: "host_to_device",
        class: "HostToDeviceBenchmark",
        parameters: HOST_COPY,
        lower: |_| LoweredCase::of_axes("pageable_host_to_device", F32, &["data_size_mib"]),
    },
    BenchmarkDefinition {
        name: "device_to_host",
        class: "DeviceToHostBenchmark",
        parameters: HOST_COPY,
        lower: |_| LoweredCase::of_axes("pageable_device_to_host", F32, &["data_size_mib"]),
    },
    BenchmarkDefinition {
        name: "device_to_device",
        class: "DeviceToDeviceBenchmark",
        parameters: &[("data_size_mib", Integer(1024)), ("direction", Word(&["uni", "bi"])), SEED],
        lower: |case| {
            let element = case.element("dtype");
            if case.text("direction") != "bi" {
                return LoweredCase::of_axes("device_to_device", element, &["data_size_mib"]);
            }
            // Two devices in a ring exchange their data.
            let mut lowered = LoweredCase::new("send_recv", element, &[("num_elements", "data_size_mib")]);
            lowered.sizes[0].factor = (8 << 20) / u64::from(element.bits());
            LoweredCase { devices: Some(2), ..lowered }
        },
    },
];

/// Name of a benchmark.
#[derive(Debug, Clone, Copy)]
pub(super) struct BenchmarkName(pub &'static BenchmarkDefinition);

impl FromStr for BenchmarkName {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = BENCHMARKS.iter().find(|benchmark| benchmark.name == name);
        let names = BENCHMARKS.iter().map(|benchmark| benchmark.name);
        found.map(Self).ok_or_else(|| UnknownName::new("benchmark", name, names))
    }
}

impl fmt::Display for BenchmarkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

word!(BenchmarkName, "the name of a benchmark", {
    let names: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).collect();
    schemars::json_schema!({ "enum": names })
});
