//! Operators of the GEMM suite against values computed by hand.

use calorimeter_recipes::{Dtype, Element, ElementCodec, FloatType, QuantConfig};
use calorimeter_shapes::Axes;
use calorimeter_zoo::{
    Device, Implementation, Matrix, NativeDevices, Operator, OperatorProblem, Output, Setup, Spec, Suite, Task,
    ZooError,
};

const BF16: Element = Element::Float(Dtype::Bf16);
const F32: Element = Element::Float(Dtype::F32);

fn problem(name: &str, axes: &[(&'static str, u64)], element: Element, output: Option<Element>) -> OperatorProblem {
    let spec = Spec { axes: Axes::new(axes.iter().copied()).unwrap(), element, output, training: None };
    let operator: Operator = name.parse().unwrap();
    operator.check(&spec).unwrap();
    OperatorProblem { operator, spec, seed: 1 }
}

fn matrix(rows: usize, values: &[f32]) -> Matrix {
    Matrix { rows, cols: values.len() / rows, values: values.to_vec().into() }
}

/// Outputs of burn on the CPU, after they passed the gate.
#[cfg(feature = "cpu")]
fn run(problem: &OperatorProblem, inputs: Vec<Matrix>) -> Vec<Output> {
    let references = problem.references(&inputs);
    let setup = Setup { implementation: Implementation::Eager, device: Device::Cpu, sets: 1 };
    let (task, inputs) = (Task::Operator(problem.clone()), calorimeter_zoo::Inputs::Operator(inputs));
    let mut workload = task
        .open(&inputs, &QuantConfig::unquantized(problem.spec.dtype()), None, setup, &mut NativeDevices::default())
        .unwrap();
    let outputs = workload.outputs().unwrap();
    problem.judge(&outputs, &references, false).unwrap();
    outputs
}

#[test]
#[cfg(feature = "cpu")]
fn quantized_rows_match_hand_computed_values() {
    let rows: [([f32; 4], [f32; 4], f32); 6] = [
        // All zeros: the scale is 1.
        ([0.0; 4], [0.0; 4], 1.0),
        // Scale 1. 17 and 19 are halfway between two values each and round to even.
        ([448.0, 17.0, 19.0, -1.0], [448.0, 16.0, 20.0, -1.0], 1.0),
        // Subnormal values, which are multiples of 2^-9, round to even as well.
        ([-448.0, 1.0 / 1024.0, 3.0 / 1024.0, 5.0 / 1024.0], [-448.0, 0.0, 1.0 / 256.0, 1.0 / 256.0], 1.0),
        // 3 / 448 is rounded to 219 * 2^-15. 1.015625 / scale is 151.96, rounded to 152, halfway between 144 and 160.
        ([3.0, 1.015_625, 1.0, -1.5], [448.0, 160.0, 144.0, -224.0], 219.0 / 32768.0),
        // Scales below the square root of the smallest normal bf16 value become 1.
        ([1e-20, 0.0, -1e-20, 0.0], [0.0; 4], 1.0),
        // 2^-53 / 448 is 1.143 * 2^-62, rounded to 146 * 2^-69 = 1.9e-19, which is just above the minimum scale.
        ([2f32.powi(-53), 0.0, -2f32.powi(-54), 0.0], [448.0, 0.0, -224.0, 0.0], 146.0 * 2f32.powi(-69)),
    ];
    let x: Vec<f32> = rows.iter().flat_map(|(x, ..)| x.map(|x| Dtype::Bf16.round(x))).collect();
    let codes: Vec<f32> = rows.iter().flat_map(|(_, codes, _)| *codes).collect();
    let scales: Vec<f32> = rows.iter().map(|(.., scale)| *scale).collect();
    let outputs = run(&problem("quantization", &[("m", 6), ("n", 4)], BF16, None), vec![matrix(6, &x)]);
    assert_eq!(outputs[0].values, codes);
    assert_eq!(outputs[1].values, scales);
    let turned: Vec<f32> = (0..24).map(|i| x[i % 6 * 4 + i / 6]).collect();
    let outputs = run(&problem("transpose_quantization", &[("m", 4), ("n", 6)], BF16, None), vec![matrix(4, &turned)]);
    assert_eq!((outputs[0].rows, outputs[0].cols), (6, 4));
    assert_eq!((&outputs[0].values, &outputs[1].values), (&codes, &scales));
}

#[test]
#[cfg(feature = "cpu")]
fn static_scale_clips_beyond_224() {
    let x = [300.0, 225.0, 224.0, -224.0, -1e30, 1.0, 8.5, -9.5];
    let expected = [448.0, 448.0, 448.0, -448.0, -448.0, 2.0, 16.0, -20.0];
    let outputs = run(&problem("quantization_static_scaling", &[("m", 2), ("n", 4)], BF16, None), vec![matrix(2, &x)]);
    assert_eq!(outputs[0].values, expected);
    assert_eq!((outputs[1].rows, outputs[1].cols, outputs[1].values[0]), (1, 1, 0.5));
}

#[test]
fn e2m1_has_a_reference_but_no_burn_tensors() {
    let problem = problem("quantization", &[("m", 1), ("n", 6)], BF16, Some(Element::E2m1));
    // 0.25, 0.75 and 2.5 are halfway between two values.
    let references = problem.references(&[matrix(1, &[6.0, -3.0, 0.25, 0.75, 2.5, -5.5])]);
    assert_eq!(references[0].values, [6.0, -3.0, 0.0, 1.0, 2.0, -6.0]);
    assert_eq!(references[1].values, [1.0]);
    let error = problem.operator.check_support(&problem.spec, Implementation::Eager, Device::Cpu).unwrap_err();
    assert!(matches!(&error, ZooError::Unsupported(why) if why.contains("e2m1")), "{error}");
}

#[test]
fn f32_quotients_pass_and_truncated_ones_fail() {
    let problem = problem("quantization", &[("m", 64), ("n", 128)], BF16, None);
    let inputs = problem.inputs();
    let references = problem.references(&inputs);
    let scales: Vec<f32> = references[1].values.iter().map(|&scale| scale as f32).collect();
    let by = |code: fn(f32) -> f32| {
        let numbers = inputs[0].values.iter().enumerate();
        let values = numbers.map(|(i, x)| code(x / scales[i / 128])).collect();
        let codes = Output { rows: 64, cols: 128, values };
        problem.judge(&[codes, Output { rows: 64, cols: 1, values: scales.clone() }], &references, false)
    };
    let judged = by(|quotient| Element::E4m3.decode(Element::E4m3.encode(quotient))).unwrap();
    assert!(judged.rel_l2 > 0.0);
    // Smaller by about half a step: truncation instead of rounding.
    assert!(by(|quotient| Element::E4m3.decode(Element::E4m3.encode(quotient * (1.0 - 1.0 / 18.0)))).is_err());
    assert!(by(|quotient| quotient).is_err());
}

#[test]
#[cfg(feature = "cpu")]
fn every_e4m3_value_is_decoded_exactly() {
    let numbers: Vec<f32> = (0..256).map(|code| Element::E4m3.decode(code)).filter(|x| x.is_finite()).collect();
    let axes = [("m", 254), ("k", 1), ("n", 1)];
    for (name, output) in [("gemm_simple", None), ("gemm_simple_with_dtype", Some(Element::E4m3))] {
        let inputs = vec![matrix(254, &numbers), matrix(1, &[1.0])];
        let outputs = run(&problem(name, &axes, Element::E4m3, output), inputs);
        assert_eq!(outputs[0].values, numbers, "{name}");
    }
}

#[test]
#[cfg(feature = "cpu")]
fn scales_apply_after_the_matmul() {
    let axes = [("m", 2), ("k", 2), ("n", 1)];
    let mut inputs =
        vec![matrix(2, &[1.0, 2.0, 3.0, -4.0]), matrix(2, &[16.0, 8.0]), matrix(2, &[0.5, 2.0]), matrix(1, &[3.0])];
    let outputs = run(&problem("gemm", &axes, Element::E4m3, None), inputs.clone());
    assert_eq!(outputs[0].values, [48.0, 96.0]);
    inputs.push(matrix(2, &[0.25, -96.0]));
    let outputs = run(&problem("gemm_accum", &axes, Element::E4m3, None), inputs);
    assert_eq!(outputs[0].values, [48.25, 0.0]);
}

#[test]
#[cfg(feature = "cpu")]
fn rowwise_output_is_scaled_only_when_dequantized() {
    // Scales 1/2 and 1/4; quantized values 448, 2 and 448, -8.
    let inputs = || vec![matrix(1, &[224.0, 1.0]), matrix(2, &[112.0, -2.0])];
    let axes = [("m", 1), ("k", 2), ("n", 1)];
    for (name, exact) in [
        ("gemm_fp8_rowwise", 448.0 * 448.0 - 16.0),
        ("gemm_fp8_rowwise_w_dequantize", (448.0 * 448.0 - 16.0) / 8.0),
        // The static scale 1/2 is twice the dynamic scale of B.
        ("gemm_fp8_rowwise_static_scaling", 448.0 * 224.0 - 8.0),
    ] {
        let outputs = run(&problem(name, &axes, BF16, None), inputs());
        assert_eq!(outputs[0].values, [Dtype::Bf16.round(exact)], "{name}");
    }
}

#[test]
#[cfg(feature = "cpu")]
fn heads_are_independent() {
    for name in ["attention", "attention_causal"] {
        for element in [F32, BF16] {
            let problem =
                problem(name, &[("batch", 2), ("heads", 3), ("sequence", 65), ("head_dim", 16)], element, None);
            run(&problem, problem.inputs());
        }
    }
}

#[test]
fn flops_and_bytes_match_hand_counts() {
    let product = [("m", 2), ("k", 256), ("n", 128)];
    let cases = [
        ("gemm_simple", Element::E4m3, 2 * 2 * 256 * 128, 2 * 256 + 256 * 128 + 2 * 2 * 128),
        ("gemm", Element::E4m3, 2 * 2 * 256 * 128 + 2 * 256, 2 * 256 + 256 * 128 + 4 * (2 + 128) + 2 * 2 * 128),
        ("gemm_accum", Element::E4m3, 2 * 2 * 256 * 128 + 3 * 256, 2 * 256 + 256 * 128 + 4 * 130 + 8 * 2 * 128),
        ("gemm_fp8_rowwise", BF16, 2 * 2 * 256 * 128 + 4 * (512 + 32768) + 130, 2 * (512 + 32768 + 256)),
        // Two blocks along k with one scale for each of 2 rows of A and 1 block of columns of B.
        ("gemm_fp8_b128_fp32", BF16, 2 * 2 * 256 * 128 + 5 * (512 + 32768) + 2 * (2 + 1), 2 * (512 + 32768 + 256)),
    ];
    for (name, element, flops, bytes) in cases {
        let OperatorProblem { operator, spec, .. } = problem(name, &product, element, None);
        assert_eq!((operator.flops(&spec), operator.bytes(&spec)), (flops, bytes), "{name}");
    }
}

#[test]
fn unsupported_dtypes_list_supported_ones() {
    let refusal = |name: &str, element, output| {
        let operator: Operator = name.parse().unwrap();
        let axes = Axes::new(operator.info().axes.iter().map(|&axis| (axis, 128))).unwrap();
        operator.check(&Spec { axes, element, output, training: None }).unwrap_err().to_string()
    };
    assert_eq!(refusal("gemm", BF16, None), "gemm takes e4m3, not bf16");
    assert_eq!(refusal("gemm_simple", Element::E4m3, Some(F32)), "gemm_simple writes bf16, not f32");
    assert_eq!(refusal("quantization", F32, None), "quantization takes bf16, not f32");
    assert_eq!(refusal("add", BF16, Some(F32)), "add writes its input dtype; omit the output dtype f32");
    assert!(Operator::all().iter().filter(|one| one.info().suite == Suite::Gemm).count() >= 29);
}
