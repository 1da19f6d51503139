//! Accuracy of every operator in every float dtype, at sizes that are not powers of two.

use calorimeter_recipes::{Dtype, Element, RecipeVariant};
use calorimeter_shapes::Axes;
use calorimeter_zoo::{
    Device, FusionModel, Implementation, NativeDevices, Operator, OperatorProblem, Setup, Spec, Suite, Task, ZooError,
    gate, open_operator,
};

/// Sizes to test of an operator's axis.
pub(crate) type AxisSizes = fn(Operator, &str) -> Vec<u64>;

/// Sizes by axis: odd ones, powers of two, and 1.
pub(crate) fn many_sizes(_: Operator, axis: &str) -> Vec<u64> {
    match axis {
        "dimension" => vec![1, 31, 33, 257, 768, 1000, 1025],
        "elements" => vec![1, 1000, 4096],
        "num_elements" => vec![1, 1000],
        "sequence" => vec![3, 33],
        "m" => vec![1, 5],
        "out_channels" => vec![5, 7],
        "in_channels" => vec![1, 5],
        "k" => vec![33, 256],
        // More than one column: after cancellation a single result has no meaningful magnitude for the relative error.
        "n" => vec![7, 31, 256],
        "kernel" => vec![1, 3],
        "size" => vec![2, 9],
        "heads" => vec![1, 2],
        "head_dim" => vec![1, 17, 64],
        "data_size_mib" => vec![1],
        "matrix_dim" => vec![1, 6],
        "devices" => vec![2],
        _ => vec![3],
    }
}

/// Sizes for GPUs, where a software adapter autotunes each matmul shape for many seconds: one matmul shape of more than
/// one row (see `models.rs`), and two widths for other operators.
#[cfg(feature = "wgpu")]
fn few_sizes(operator: Operator, axis: &str) -> Vec<u64> {
    match axis {
        "dimension" if operator.matmuls() == 0 => vec![33, 257],
        "n" if operator.matmuls() == 0 => vec![33, 256],
        "elements" | "num_elements" => vec![1000],
        "batch" | "heads" => vec![2],
        "dimension" | "k" => vec![40],
        "n" => vec![13],
        _ => vec![3],
    }
}

/// Sizes for native kernels: also multiples of 16, and partial panels.
#[cfg(feature = "native")]
fn native_sizes(operator: Operator, axis: &str) -> Vec<u64> {
    match axis {
        "elements" | "num_elements" => vec![1, 1000, 4096, 10_007],
        "m" => vec![1, 5, 33, 64],
        "k" => vec![33, 256, 1040],
        "n" if operator.info().axes == ["n"] => vec![7, 1000, 10_007],
        "dimension" if operator.matmuls() > 0 => vec![40, 128],
        "n" => vec![7, 48, 256],
        _ => many_sizes(operator, axis),
    }
}

/// Cartesian product of the sizes of all axes.
pub(crate) fn shapes(operator: Operator, sizes: AxisSizes) -> Vec<Axes> {
    let axes = operator.info().axes;
    let mut points: Vec<Vec<(&'static str, u64)>> = vec![vec![]];
    for &axis in axes {
        points = points
            .into_iter()
            .flat_map(|point| {
                sizes(operator, axis).into_iter().map(move |size| point.iter().copied().chain([(axis, size)]).collect())
            })
            .collect();
    }
    points.into_iter().map(|point| Axes::new(point).unwrap()).collect()
}

/// Input and output dtypes to try; operators reject unsupported ones.
pub(crate) fn dtype_pairs(operator: Operator) -> Vec<(Element, Option<Element>)> {
    let floats = Dtype::ALL.map(Element::Float);
    if operator.info().suite != Suite::Gemm {
        return floats.map(|element| (element, None)).to_vec();
    }
    let outputs = [None, Some(Element::Float(Dtype::F32)), Some(Element::E4m3), Some(Element::E2m1)];
    let elements = floats.into_iter().chain([Element::E4m3, Element::E2m1]);
    elements.flat_map(|element| outputs.map(|output| (element, output))).collect()
}

/// Cases that burn's CPU backend accumulates in f16: convolutions of few channels, and one row times a row-major
/// matrix.
fn is_wrong_in_burn(operator: Operator, spec: &Spec) -> bool {
    let few_channels = spec.axes.get("in_channels").is_some_and(|channels| channels < 5);
    let one_row = operator.info().name == "matmul" && spec.axis("m") == 1;
    spec.element == Element::Float(Dtype::F16) && (few_channels || one_row)
}

/// Operators that run on a single device.
pub(crate) fn single_device_operators() -> Vec<Operator> {
    let computed = |operator: &Operator| !matches!(operator.info().suite, Suite::Elsewhere | Suite::Links);
    Operator::all().into_iter().filter(|operator| computed(operator) && !is_model_pass(operator)).collect()
}

/// Defines a module with one call of `$check` per suite of [`single_device_operators`], so that no test takes long.
macro_rules! test_suites {
    ($module:ident, $check:path) => {
        test_suites!($module, $check, gemm: Gemm, normalizations_and_activations: Ops, fusion: Fusion,
            calibration: Calibration, training: Training);
    };
    ($module:ident, $check:path, $($name:ident: $suite:ident),+) => {
        mod $module {
            use super::*;

            $(#[test]
            fn $name() {
                $check(Suite::$suite);
            })+

            #[test]
            fn every_operator_belongs_to_one_of_these_suites() {
                let count: usize = [$(operators_of(Suite::$suite).len()),+].into_iter().sum();
                assert_eq!(count, crate::operators::single_device_operators().len());
            }
        }
    };
}
pub(crate) use test_suites;

/// Operators of a suite that run on a single device.
pub(crate) fn operators_of(suite: Suite) -> Vec<Operator> {
    single_device_operators().into_iter().filter(|operator| operator.suite() == suite).collect()
}

/// True for training passes of models, which `trained_models.rs` tests at other shapes.
pub(crate) fn is_model_pass(operator: &Operator) -> bool {
    operator.suite() == Suite::Training && !operator.info().name.starts_with("linear_")
}

fn check(device: Device, implementations: &[Implementation], operators: &[Operator], sizes: AxisSizes) {
    let (mut machines, mut failures, mut matched_sets) = (NativeDevices::default(), Vec::new(), 0);
    for &operator in operators {
        let (mut passed, mut refused) = (0, 0);
        for axes in shapes(operator, sizes) {
            for (element, output) in dtype_pairs(operator) {
                let spec = Spec { axes: axes.clone(), element, output, training: None };
                let output = output.map_or_else(String::new, |output| format!(" to {output}"));
                if operator.check(&spec).is_err() || (device == Device::Cpu && is_wrong_in_burn(operator, &spec)) {
                    continue;
                }
                // A software adapter compiles each kernel for about a second, so Vulkan runs f32 only.
                if matches!(device, Device::Vulkan(_)) && element != Element::Float(Dtype::F32) {
                    continue;
                }
                let problem = OperatorProblem { operator, spec, seed: 5 };
                let task = Task::Operator(problem.clone());
                let input_sets = [("plain", problem.inputs()), ("gate", problem.gate_inputs())];
                for ((input_set, inputs), &implementation) in
                    input_sets.iter().flat_map(|input_set| implementations.iter().map(move |one| (input_set, one)))
                {
                    let case = format!("{operator} {implementation} {device} {element}{output} {axes} {input_set}");
                    if task.support(RecipeVariant::BASELINE, implementation, device).is_err() {
                        continue;
                    }
                    let setup = Setup { implementation, device, sets: 2 };
                    let mut workload = match open_operator(&problem, inputs, setup, &mut machines) {
                        Ok(workload) => workload,
                        Err(ZooError::Unsupported(why)) => {
                            let is_allowed = element != Element::Float(Dtype::F32) || problem.spec.output.is_some();
                            assert!(is_allowed, "{case}: {why}");
                            refused += 1;
                            continue;
                        }
                        Err(error) => panic!("{case}: {error}"),
                    };
                    let references = problem.references(inputs);
                    let mut previous = Vec::new();
                    for _ in 0..setup.sets {
                        let set = workload.next_set();
                        // The outputs of the first set are downloaded; where supported, the device compares the outputs
                        // of later sets with them.
                        let matches_first = workload
                            .device_check()
                            .map_or(Ok(None), |check| check.run_and_match())
                            .unwrap_or_else(|error| panic!("{case}: {error}"));
                        let outputs = match matches_first {
                            Some(_) => workload.last_outputs(set).map(Option::unwrap_or_default),
                            None => workload.outputs(),
                        };
                        let outputs = outputs.unwrap_or_else(|error| panic!("{case}: {error}"));
                        if matches_first == Some(true) {
                            assert!(task.are_rotations_of(&outputs, &previous, set), "{case}");
                            matched_sets += 1;
                        }
                        let outputs = task.rotate_back(outputs, set);
                        previous.clone_from(&outputs);
                        let judged = problem.judge(&outputs, &references, workload.may_use_tf32());
                        failures.extend(judged.err().map(|mismatch| format!("{case} set {set}: {mismatch}")));
                    }
                    passed += 1;
                }
            }
        }
        // Some operators need dtypes that not every GPU has.
        let is_allowed = passed > 0 || (refused > 0 && device != Device::Cpu);
        assert!(is_allowed, "no case of {operator} ran on {device}");
    }
    assert!(matched_sets > 0 || device == Device::Cpu, "no output set on {device} matched the first");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[cfg(feature = "cpu")]
test_suites!(operators_match_references_on_cpu, check_on_cpu);

#[cfg(feature = "cpu")]
fn check_on_cpu(suite: Suite) {
    check(Device::Cpu, &Implementation::ALL, &operators_of(suite), many_sizes);
}

#[test]
fn cubecl_kernels_exist_on_gpus_only() {
    let at = |operator: Operator, element| {
        let mut specs =
            shapes(operator, many_sizes).into_iter().map(|axes| Spec { axes, element, output: None, training: None });
        specs.find(|spec| operator.check(spec).is_ok())
    };
    let on = |device, dtype| -> Vec<String> {
        let has = |operator: &Operator| {
            let spec = at(*operator, Element::Float(dtype));
            spec.is_some_and(|spec| operator.check_support(&spec, Implementation::Cube, device).is_ok())
        };
        // Trained operators have one for optimizers and under recipes.
        let suites = |operator: &Operator| operator.suite() != Suite::Training;
        Operator::all().into_iter().filter(suites).filter(has).map(|operator| operator.to_string()).collect()
    };
    let of_any_float =
        ["layer_norm", "rms_norm", "gelu", "gelu_tanh", "silu", "softmax", "ln_gelu", "add_ln", "swiglu"];
    let of_matrices = ["add", "inference_add", "inference_silu_mul", "rmsnorm_fwd", "inference_rmsnorm"];
    let of_any_float = [&of_any_float[..], &of_matrices].concat();
    let (cuda, wgpu) = (cfg!(feature = "cuda"), cfg!(feature = "wgpu"));
    for (device, has_backend) in [(Device::Cuda(0), cuda), (Device::Vulkan(0), wgpu), (Device::Metal(0), wgpu)] {
        let expected = if has_backend { &of_any_float[..] } else { &[] };
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            assert_eq!(on(device, dtype), expected, "{device} {dtype}");
        }
    }
    assert_eq!(on(Device::Cpu, Dtype::F32), Vec::<String>::new());
}

#[test]
#[ignore = "needs Vulkan"]
#[cfg(feature = "wgpu")]
fn cubecl_operators_match_references_on_vulkan() {
    let has_kernel = |operator: &Operator| {
        let mut specs = shapes(*operator, few_sizes).into_iter();
        specs.any(|axes| {
            let spec = Spec { axes, element: Element::Float(Dtype::F32), output: None, training: None };
            let known = operator.check(&spec).is_ok();
            known && operator.check_support(&spec, Implementation::Cube, Device::Vulkan(0)).is_ok()
        })
    };
    let operators: Vec<Operator> = single_device_operators().into_iter().filter(has_kernel).collect();
    assert!(operators.len() >= 12, "{operators:?}");
    check(Device::Vulkan(0), &Implementation::ALL, &operators, few_sizes);
}

/// Operators with a CUDA kernel.
const NATIVE: [&str; 57] = [
    "stream_copy",
    "stream_scale",
    "stream_add",
    "stream_triad",
    "single_device_hbm_copy",
    "add",
    "inference_add",
    "quantization",
    "quantization_static_scaling",
    "transpose_quantization",
    "transpose_quantization_static_scaling",
    "gemm_multiple_run",
    "gemm_simple",
    "gemm_simple_with_dtype",
    "gemm_throttling",
    "gemm",
    "gemm_accum",
    "gemm_fp8_rowwise",
    "gemm_fp8_rowwise_w_dequantize",
    "gemm_fp8_rowwise_static_scaling",
    "gemm_fp8_b128_fp32",
    "gemm_fp8_b128_fp32_static_scaling",
    "gemm_mxfp8_b32",
    "gemm_mxfp8_b32_static_scaling",
    "matmul",
    "linear_bias",
    "ln_linear",
    "swiglu_mlp",
    "linear_bias_relu",
    "linear_bias_gelu",
    "linear_bias_silu",
    "layer_norm",
    "ln_gelu",
    "add_ln",
    "softmax",
    "rms_norm",
    "gelu",
    "gelu_tanh",
    "silu",
    "mse_loss",
    "cross_entropy",
    "swiglu",
    "inference_silu_mul",
    "inference_sigmoid",
    "swiglu_fwd",
    "swiglu_bwd",
    "rmsnorm_fwd",
    "rmsnorm_bwd",
    "inference_rmsnorm",
    "dot",
    "axpy",
    "gemv",
    "full_attention",
    "attention_4d",
    "attention_4d_causal",
    "attention",
    "attention_causal",
];

/// Operators with a CPU kernel.
const HOST_NATIVE: [&str; 23] = [
    "dot",
    "axpy",
    "stream_copy",
    "stream_scale",
    "stream_add",
    "stream_triad",
    "add",
    "inference_add",
    "inference_silu_mul",
    "inference_sigmoid",
    "rmsnorm_fwd",
    "inference_rmsnorm",
    "layer_norm",
    "ln_gelu",
    "add_ln",
    "softmax",
    "rms_norm",
    "gelu",
    "gelu_tanh",
    "silu",
    "mse_loss",
    "cross_entropy",
    "swiglu",
];

/// Native operators that only move data.
const TRANSFERS: [&str; 7] = [
    "host_to_device",
    "device_to_host",
    "host_device_both",
    "pageable_host_to_device",
    "pageable_device_to_host",
    "pageable_host_device_both",
    "host_device",
];
const COLLECTIVES: [&str; 7] =
    ["all_reduce", "psum", "all_gather", "reduce_scatter", "psum_scatter", "all_to_all", "send_recv"];

#[test]
#[ignore = "needs CUDA"]
#[cfg(feature = "native")]
fn transfers_and_collectives_match_references_on_cuda() {
    let native = &[Implementation::Native];
    check(Device::Cuda(0), native, &TRANSFERS.map(|name| name.parse().unwrap()), many_sizes);
    let gpus = calorimeter_kernels::native::list_gpus().unwrap().len();
    let collectives = COLLECTIVES.map(|name| name.parse().unwrap());
    if gpus > 1 {
        println!("collectives on {gpus} GPUs");
        return check(Device::Cuda(0), native, &collectives, many_sizes);
    }
    let problem = OperatorProblem {
        operator: collectives[0],
        spec: Spec {
            axes: Axes::new([("matrix_dim", 1), ("devices", 2)]).unwrap(),
            element: Element::Float(Dtype::F32),
            output: None,
            training: None,
        },
        seed: 5,
    };
    let setup = Setup { implementation: Implementation::Native, device: Device::Cuda(0), sets: 1 };
    let opened =
        calorimeter_zoo::backends::open_operator(&problem, &problem.inputs(), setup, &mut NativeDevices::default());
    let Err(ZooError::Unsupported(why)) = opened else { panic!("opened on a single GPU") };
    assert_eq!(why, "all_reduce needs 2 GPUs; this machine has 1");
}

#[test]
fn collective_references_match_their_definitions() {
    let spec = |axis, size, devices| Spec {
        axes: Axes::new([(axis, size), ("devices", devices)]).unwrap(),
        element: Element::Float(Dtype::Bf16),
        output: None,
        training: None,
    };
    for name in COLLECTIVES {
        let (operator, axis) =
            (name.parse::<Operator>().unwrap(), if name == "send_recv" { "num_elements" } else { "matrix_dim" });
        let size = if name == "send_recv" { 1024 } else { 1 };
        let problem = OperatorProblem { operator, spec: spec(axis, size, 2), seed: 5 };
        let inputs = problem.inputs();
        let [first, second] = [inputs[0].exact_row(0), inputs[0].exact_row(1)];
        let sum: Vec<f64> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
        let (low, high) = (0..first.len() / 2, first.len() / 2..first.len());
        let expected: [Vec<f64>; 2] = match name {
            "all_reduce" | "psum" => [sum.clone(), sum],
            "all_gather" => [[&first[..], &second].concat(), [&first[..], &second].concat()],
            "reduce_scatter" | "psum_scatter" => [sum[low].to_vec(), sum[high].to_vec()],
            "all_to_all" => {
                [[&first[low.clone()], &second[low]].concat(), [&first[high.clone()], &second[high]].concat()]
            }
            _ => [second, first],
        };
        let reference = &problem.references(&inputs)[0];
        for (index, value) in reference.values.iter().enumerate() {
            let (row, col) = reference.sample.position(index);
            assert_eq!(*value, expected[row][col], "{name} {row} {col}");
        }
        let slot = operator.outputs(&problem.spec)[0];
        assert_eq!((slot.rows, slot.cols), (2, expected[0].len() as u64), "{name}");
    }
    // Counts as in NCCL's tests: with 4 devices and 1024 bf16 elements each, three quarters cross a link, twice for
    // sums.
    for (name, bytes) in [("all_reduce", 3072), ("all_gather", 6144), ("reduce_scatter", 1536), ("all_to_all", 1536)] {
        assert_eq!(name.parse::<Operator>().unwrap().bytes(&spec("matrix_dim", 1, 4)), bytes, "{name}");
    }
    assert_eq!("send_recv".parse::<Operator>().unwrap().bytes(&spec("num_elements", 1024, 4)), 2048);
    let alone = "psum".parse::<Operator>().unwrap().check(&spec("matrix_dim", 1, 1)).unwrap_err();
    assert!(matches!(&alone, ZooError::Shape(why) if why.contains("devices")), "{alone}");
}

#[test]
#[ignore = "needs CUDA"]
#[cfg(feature = "native")]
fn native_operators_match_references_on_cuda() {
    let operators = NATIVE.map(|name| name.parse().unwrap());
    check(Device::Cuda(0), &[Implementation::Native], &operators, native_sizes);
}

#[test]
#[cfg(feature = "native")]
fn native_support_matches_the_registered_kernels() {
    let spec = |operator: Operator, element, output, size| {
        let axes = Axes::new(operator.info().axes.iter().map(|&axis| (axis, size))).unwrap();
        Spec { axes, element, output, training: None }
    };
    for operator in Operator::all() {
        let native = |device| {
            dtype_pairs(operator).into_iter().any(|(element, output)| {
                // 128 is required by block scales.
                [64, 128].into_iter().any(|size| {
                    let spec = spec(operator, element, output, size);
                    let known = operator.check(&spec).is_ok();
                    known && operator.check_support(&spec, Implementation::Native, device).is_ok()
                })
            })
        };
        let name = operator.info().name;
        let trained = operator.suite() == Suite::Training;
        let known = trained || [&NATIVE[..], &TRANSFERS, &COLLECTIVES].iter().any(|names| names.contains(&name));
        assert_eq!(native(Device::Cuda(0)), known, "{operator}");
        assert_eq!(native(Device::Cpu), HOST_NATIVE.contains(&name), "{operator}");
        assert!(!native(Device::Vulkan(0)), "{operator}");
    }
    let refusal = |name: &str, element, output, size| {
        let operator: Operator = name.parse().unwrap();
        let spec = spec(operator, element, output, size);
        operator.check_support(&spec, Implementation::Native, Device::Cuda(0)).unwrap_err().to_string()
    };
    let (bf16, e4m3, e2m1) = (Element::Float(Dtype::Bf16), Element::E4m3, Element::E2m1);
    let sixteens = "`native` multiplies e4m3 by cuBLASLt, which requires k and n in multiples of 16; k is 40";
    assert_eq!(refusal("gemm", e4m3, None, 40), sixteens);
    assert_eq!(refusal("gemm_fp8_rowwise", bf16, None, 40), sixteens);
    assert_eq!(
        refusal("gemm_throttling", e2m1, None, 64),
        "`native` multiplies float and e4m3 inputs to float outputs in this version, not e2m1 to bf16"
    );
    assert_eq!(refusal("quantization", bf16, Some(e2m1), 64), "`native` writes e4m3 in this version, not e2m1");
}

#[test]
fn wrong_outputs_are_rejected() {
    for operator in single_device_operators() {
        for axes in shapes(operator, many_sizes) {
            let specs = dtype_pairs(operator).into_iter();
            let mut specs = specs.map(|(element, output)| Spec { axes: axes.clone(), element, output, training: None });
            let Some(spec) = specs.find(|spec| operator.check(spec).is_ok()) else { continue };
            let problem = OperatorProblem { operator, spec, seed: 5 };
            let references = problem.references(&problem.inputs());
            for (index, reference) in references.iter().enumerate() {
                let tolerance = operator.tolerance(&problem.spec, index);
                let scale =
                    (reference.values.iter().map(|v| v * v).sum::<f64>() / reference.values.len() as f64).sqrt();
                let slot = operator.outputs(&problem.spec)[index];
                let whole = reference.sample.len() as u64 == slot.rows * slot.cols;
                assert!(whole && tolerance.element < 0.5, "{operator} {}", problem.spec.axes);
                let mut values: Vec<f32> = reference.values.iter().map(|&value| value as f32).collect();
                let last = values.len() - 1;
                values[last] += (2.0 * tolerance.element * scale.max(reference.values[last].abs())) as f32;
                let (rows, cols) = (slot.rows as usize, slot.cols as usize);
                let output = calorimeter_zoo::Output { rows, cols, values };
                // Outputs in e4m3 and e2m1 have steps wider than most tolerances.
                assert!(gate::judge(&output, reference, &tolerance).is_err(), "{operator} {}", problem.spec.axes);
            }
        }
    }
}

/// Operator at batch 2, sequence 3, dimension 10 in bf16.
fn small(operator: &str) -> (Operator, Spec) {
    let axes = Axes::new([("batch", 2), ("sequence", 3), ("dimension", 10)]).unwrap();
    (operator.parse().unwrap(), Spec { axes, element: Element::Float(Dtype::Bf16), output: None, training: None })
}

#[test]
fn flops_and_bytes_match_hand_counts() {
    for (operator, flops, bytes) in [
        ("layer_norm", 7 * 60, 2 * (2 * 60 + 2 * 10)),
        ("rms_norm", 4 * 60, 2 * (2 * 60 + 10)),
        ("gelu", 5 * 60, 2 * 2 * 60),
        ("gelu_tanh", 9 * 60, 2 * 2 * 60),
        ("silu", 4 * 60, 2 * 2 * 60),
        ("softmax", 5 * 60, 2 * 2 * 60),
        // Losses are f32, class indices i32.
        ("mse_loss", 3 * 60 + 1, 2 * 2 * 60 + 4),
        ("cross_entropy", 4 * 60 + 3 * 6 + 1, 2 * 60 + 4 * 6 + 4),
        ("ln_gelu", 12 * 60, 2 * (2 * 60 + 2 * 10)),
        ("add_ln", 8 * 60, 2 * (4 * 60 + 2 * 10)),
        ("swiglu", 5 * 60, 2 * 3 * 60),
    ] {
        let (one, spec) = small(operator);
        assert_eq!((one.flops(&spec), one.bytes(&spec)), (flops, bytes), "{operator}");
    }
}

#[test]
fn fusion_models_match_hand_counts() {
    for (operator, parts, unfused_bytes, fused_bytes) in [
        ("ln_gelu", ["layer_norm", "gelu"], 2 * (4 * 60 + 2 * 10), 2 * (2 * 60 + 2 * 10)),
        ("add_ln", ["add", "layer_norm"], 2 * (5 * 60 + 2 * 10), 2 * (4 * 60 + 2 * 10)),
        ("swiglu", ["silu", "multiply"], 2 * 5 * 60, 2 * 3 * 60),
    ] {
        let (one, spec) = small(operator);
        let model = FusionModel { operators: parts.map(String::from).to_vec(), unfused_bytes, fused_bytes };
        assert_eq!(one.fusion(&spec), Some(model), "{operator}");
    }
    assert_eq!(small("layer_norm").0.fusion(&small("layer_norm").1), None);
}

#[test]
fn single_class_is_rejected() {
    let axes = Axes::new([("batch", 1), ("sequence", 2), ("dimension", 1)]).unwrap();
    let (operator, spec) = small("cross_entropy");
    let error = operator.check(&Spec { axes, ..spec }).unwrap_err();
    assert!(matches!(&error, ZooError::Shape(why) if why.contains("dimension")), "{error}");
}

#[test]
fn unknown_axes_are_reported() {
    let operator: Operator = "layer_norm".parse().unwrap();
    let axes = Axes::new([("batch", 1), ("seq", 2), ("dimension", 3)]).unwrap();
    let error =
        operator.check(&Spec { axes, element: Element::Float(Dtype::F32), output: None, training: None }).unwrap_err();
    assert!(matches!(&error, ZooError::Shape(why) if why.contains("batch, seq, dimension")), "{error}");
}
