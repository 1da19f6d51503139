//! Mistakes of operator kernels, on the gate's data. The gate must reject each, and accept the correct outputs.

use crate::operators::{dtype_pairs, operators_of, single_device_operators, test_suites};
use calorimeter_case::Suite;
use calorimeter_recipes::{Dtype, Element, ElementCodec, FloatType};
use calorimeter_shapes::Axes;
use calorimeter_zoo::gate::Mismatch;
use calorimeter_zoo::{Fill, Matrix, Operand, Operator, OperatorProblem, Output, OutputSample, Spec};

/// Operator with the gate's inputs and the correct outputs.
struct OperatorBench {
    name: String,
    problem: OperatorProblem,
    inputs: Vec<Matrix>,
    right: Vec<Output>,
}

/// Sizes with full fragments and blocks of every kind.
fn size(axis: &str) -> u64 {
    match axis {
        "batch" => 3,
        "sequence" => 17,
        "heads" => 2,
        "dimension" | "head_dim" | "m" => 64,
        "k" | "n" => 256,
        "size" | "out_channels" => 9,
        "in_channels" => 5,
        "kernel" => 3,
        "elements" | "num_elements" => 1000,
        other => panic!("{other}"),
    }
}

impl OperatorBench {
    fn new(operator: Operator, spec: Spec) -> Self {
        let problem = OperatorProblem { operator, spec, seed: 9 };
        let inputs = problem.gate_inputs();
        let right = outputs(&problem, &inputs);
        let output = problem.spec.output.map_or_else(String::new, |output| format!(" to {output}"));
        Self { name: format!("{operator} {}{output}", problem.spec.element), problem, inputs, right }
    }

    /// Benches of each operator in all supported dtypes.
    fn for_all_dtypes(operators: impl IntoIterator<Item = Operator>) -> impl Iterator<Item = Self> {
        operators.into_iter().flat_map(|operator| {
            let axes = Axes::new(operator.info().axes.iter().map(|&axis| (axis, size(axis)))).unwrap();
            let spec = move |(element, output)| Spec { axes: axes.clone(), element, output, training: None };
            let specs = dtype_pairs(operator).into_iter().map(spec).filter(move |spec| operator.check(spec).is_ok());
            specs.map(move |spec| Self::new(operator, spec))
        })
    }

    fn for_operators(names: &[&str]) -> Vec<Self> {
        Self::for_all_dtypes(names.iter().map(|name| name.parse().unwrap())).collect()
    }

    /// True if the gate accepts the outputs; TF32 is allowed for f32, as on CUDA.
    fn accepts(&self, outputs: &[Output]) -> bool {
        let tf32 = self.problem.spec.element == Element::Float(Dtype::F32);
        self.problem.judge(outputs, &self.problem.references(&self.inputs), tf32).is_ok()
    }

    /// Outputs of a kernel that reads one input incorrectly.
    fn outputs_with_input(&self, input: usize, read: impl Fn(&mut [f32], usize)) -> Vec<Output> {
        let mut inputs = self.inputs.clone();
        let Matrix { cols, values, .. } = &mut inputs[input];
        let mut other = values.to_vec();
        read(&mut other, *cols);
        *values = other.into();
        outputs(&self.problem, &inputs)
    }
}

/// Outputs of a correct kernel, rounded to the stored dtype.
fn outputs(problem: &OperatorProblem, inputs: &[Matrix]) -> Vec<Output> {
    let OperatorProblem { operator, spec, .. } = problem;
    let slots = operator.outputs(spec);
    let output = |(index, slot): (usize, &calorimeter_zoo::OutputSlot)| {
        let sample = OutputSample { rows: (0..slot.rows as usize).collect(), cols: (0..slot.cols as usize).collect() };
        let stored = |value: f64| slot.element.decode(slot.element.encode(value as f32));
        let values = operator.reference(spec, inputs, index, &sample).into_iter().map(stored).collect();
        Output { rows: sample.rows.len(), cols: sample.cols.len(), values }
    };
    slots.iter().enumerate().map(output).collect()
}

fn assert_all_rejected(accepted: &[String]) {
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

#[test]
fn correct_operators_pass() {
    for bench in OperatorBench::for_all_dtypes(single_device_operators()) {
        let judged = bench.problem.judge(&bench.right, &bench.problem.references(&bench.inputs), false);
        judged.unwrap_or_else(|mismatch| panic!("{}: {mismatch}", bench.name));
    }
}

/// Emulates tensor cores in TF32: mantissas are truncated to ten bits.
#[test]
fn truncated_tf32_operands_pass_if_allowed() {
    let of_f32 = |bench: &OperatorBench| bench.problem.spec.element == Element::Float(Dtype::F32);
    for bench in OperatorBench::for_all_dtypes(single_device_operators())
        .filter(|bench| of_f32(bench) && bench.problem.operator.matmuls() > 0)
    {
        let mut inputs = bench.inputs.clone();
        let operands = bench.problem.operator.inputs(&bench.problem.spec);
        // Inputs with row means are normalized before the matmul.
        let multiplied =
            |operand: &Operand| operand.rows > 1 && operand.cols > 1 && operand.fill != Fill::NormalWithMeans;
        for (Matrix { values, .. }, _) in inputs.iter_mut().zip(operands).filter(|(_, operand)| multiplied(operand)) {
            let truncated = values.iter().map(|value| f32::from_bits(value.to_bits() & !0x1fff));
            *values = truncated.collect::<Vec<_>>().into();
        }
        let outputs = outputs(&bench.problem, &inputs);
        let judged = bench.problem.judge(&outputs, &bench.problem.references(&bench.inputs), true);
        judged.unwrap_or_else(|mismatch| panic!("{}: {mismatch}", bench.name));
    }
}

test_suites!(one_percent_errors_are_rejected, reject_one_percent_errors);

fn reject_one_percent_errors(suite: Suite) {
    let mut accepted = Vec::new();
    for bench in OperatorBench::for_all_dtypes(operators_of(suite)) {
        let slots = bench.problem.operator.outputs(&bench.problem.spec);
        for (index, slot) in slots.iter().enumerate().filter(|(_, slot)| matches!(slot.element, Element::Float(_))) {
            for factor in [1.01, 0.99] {
                let mut outputs = bench.right.clone();
                let stored = |value: f32| slot.element.decode(slot.element.encode(value));
                outputs[index].values.iter_mut().for_each(|value| *value = stored(*value * factor));
                accepted.extend(bench.accepts(&outputs).then(|| format!("{}: {factor} of output {index}", bench.name)));
            }
        }
    }
    assert_all_rejected(&accepted);
}

test_suites!(misplaced_and_stale_outputs_are_rejected, reject_misplaced_and_stale_outputs);

fn reject_misplaced_and_stale_outputs(suite: Suite) {
    let mut accepted = Vec::new();
    for bench in OperatorBench::for_all_dtypes(operators_of(suite)) {
        let OperatorBench { name, problem, right, .. } = &bench;
        let mut refuse = |mistake: &str, outputs: &[Output]| {
            accepted.extend(bench.accepts(outputs).then(|| format!("{name}: {mistake}")));
        };
        let moves = problem.operator.set_rotation(&problem.spec);
        let moved = moves.rotate_back(right.clone(), 1);
        if moved != *right {
            refuse("stale", &moved);
        }
        let before = outputs(problem, &problem.inputs());
        for (index, Output { rows, cols, values }) in right.iter().enumerate() {
            let mut refuse_with = |mistake: &str, change: &dyn Fn(&mut [f32])| {
                let mut outputs = right.clone();
                change(&mut outputs[index].values);
                refuse(&format!("{mistake} in output {index}"), &outputs);
            };
            if values.len() > 1 {
                refuse_with("every 64th element not written", &|values| {
                    (values.len() / 2..values.len()).step_by(64).for_each(|at| values[at] = f32::NAN);
                });
            }
            if values.len() > 256 && before[index].values != *values {
                refuse_with("second half not written", &|values| {
                    let half = values.len() / 2;
                    values[half..].copy_from_slice(&before[index].values[half..]);
                });
            }
            if *rows >= 16 && *cols >= 32 {
                refuse_with("two 16 x 8 fragments swapped", &|values| {
                    let at = |row: usize, col: usize| row * cols + col;
                    (0..16).for_each(|row| (0..8).for_each(|col| values.swap(at(row, col), at(row, 24 + col))));
                });
            }
        }
    }
    assert_all_rejected(&accepted);
}

/// Operator with a matmul, and its operand with the reduction dimension along rows.
const MATMULS: &[(&str, usize)] = &[
    ("gemm_multiple_run", 0),
    ("gemm", 0),
    ("gemm_accum", 0),
    ("gemm_fp8_rowwise_w_dequantize", 0),
    ("gemm_fp8_b128_fp32", 0),
    ("gemm_mxfp8_b32", 0),
    ("matmul", 0),
    ("gemv", 0),
    ("linear_bias", 1),
    ("linear_bias_gelu", 1),
    ("ln_linear", 3),
    ("swiglu_mlp", 3),
];

#[test]
fn dropped_k_tail_is_rejected() {
    let mut accepted = Vec::new();
    for (name, operand) in MATMULS {
        for bench in OperatorBench::for_operators(&[name]) {
            for tile in [8, 32] {
                let outputs = bench.outputs_with_input(*operand, |values, cols| {
                    values.chunks_mut(cols).for_each(|row| row[cols - tile..].fill(0.0));
                });
                accepted.extend(bench.accepts(&outputs).then(|| format!("{}: the last {tile}", bench.name)));
            }
        }
    }
    assert_all_rejected(&accepted);
}

/// Operator, and its inputs with one element per row or column.
const PARAMETERS: &[(&str, &[usize])] = &[
    ("layer_norm", &[1, 2]),
    ("rms_norm", &[1]),
    ("rmsnorm_fwd", &[1]),
    ("rmsnorm_bwd", &[1]),
    ("ln_linear", &[1, 2]),
    ("linear_bias", &[2]),
    ("conv2d_relu", &[2]),
    ("conv2d_bn", &[2, 3, 4, 5]),
    ("gemm", &[2, 3]),
    ("gemm_accum", &[2, 3]),
];

#[test]
fn misplaced_parameters_are_rejected() {
    let mut accepted = Vec::new();
    for (name, inputs) in PARAMETERS {
        for bench in OperatorBench::for_operators(&[name]) {
            for &input in *inputs {
                let outputs = bench.outputs_with_input(input, |values, _| values.rotate_right(1));
                accepted.extend(bench.accepts(&outputs).then(|| format!("{}: input {input}", bench.name)));
            }
        }
    }
    assert_all_rejected(&accepted);
}

/// Scale that maps the largest of the values to the largest e4m3 value.
fn scale<'a>(values: impl Iterator<Item = &'a f32>) -> f32 {
    Dtype::Bf16.round(values.fold(0.0, |top: f32, value| top.max(value.abs())) / Element::E4m3.max_value())
}

/// Ratio of the scale of the previous line to that of each line.
fn previous_scale_ratios(scales: &[f32]) -> Vec<f32> {
    (0..scales.len()).map(|at| scales[(at + scales.len() - 1) % scales.len()] / scales[at]).collect()
}

#[test]
fn misplaced_scales_are_rejected() {
    let mut accepted = Vec::new();
    for bench in OperatorBench::for_operators(&["gemm_fp8_rowwise", "gemm_fp8_rowwise_w_dequantize"]) {
        let (a, b) = (&bench.inputs[0], &bench.inputs[1]);
        let of_rows: Vec<f32> = (0..a.rows).map(|row| scale(a.row(row).iter())).collect();
        let of_cols: Vec<f32> = (0..b.cols).map(|col| scale(b.values.iter().skip(col).step_by(b.cols))).collect();
        let (of_rows, of_cols) = (previous_scale_ratios(&of_rows), previous_scale_ratios(&of_cols));
        let Output { cols, .. } = bench.right[0];
        for (whose, factor) in [
            ("rows", &(|row: usize, _: usize| of_rows[row]) as &dyn Fn(usize, usize) -> f32),
            ("one row", &|row, _| if row == 5 { of_rows[5] } else { 1.0 }),
            ("columns", &|_, col| of_cols[col]),
        ] {
            let mut outputs = bench.right.clone();
            let values = outputs[0].values.iter_mut().enumerate();
            values.for_each(|(at, value)| *value = Dtype::Bf16.round(*value * factor(at / cols, at % cols)));
            accepted.extend(bench.accepts(&outputs).then(|| format!("{}: scales of {whose}", bench.name)));
        }
    }
    // Blocks along k with scales from their amax.
    for (name, block) in [("gemm_fp8_b128_fp32", 128), ("gemm_mxfp8_b32", 32)] {
        for bench in OperatorBench::for_operators(&[name]) {
            let outputs = bench.outputs_with_input(0, |values, _| {
                let tops: Vec<f32> = values.chunks(block).map(|block| scale(block.iter())).collect();
                let power = |scale: f32| if block == 32 { scale.log2().ceil().exp2() } else { scale };
                let wrong = previous_scale_ratios(&tops.into_iter().map(power).collect::<Vec<_>>());
                let blocks = values.chunks_mut(block).zip(wrong);
                blocks.for_each(|(block, wrong)| block.iter_mut().for_each(|value| *value *= wrong));
            });
            accepted.extend(bench.accepts(&outputs).then(|| format!("{}: scales of blocks", bench.name)));
        }
    }
    for bench in OperatorBench::for_operators(&["quantization"]) {
        let mut outputs = bench.right.clone();
        outputs[1].values.rotate_right(1);
        accepted.extend(bench.accepts(&outputs).then(|| format!("{}: scales rotated by one", bench.name)));
        let Output { rows, cols, .. } = bench.right[0];
        let element = bench.problem.operator.outputs(&bench.problem.spec)[0].element;
        let mut outputs = bench.right.clone();
        for row in 0..rows {
            let scale = bench.right[1].values[(row + rows - 1) % rows];
            let codes = &mut outputs[0].values[row * cols..][..cols];
            let code = |x: &f32| element.decode(element.encode(Dtype::Bf16.round(x / scale)));
            codes.iter_mut().zip(bench.inputs[0].row(row)).for_each(|(value, x)| *value = code(x));
        }
        accepted.extend(bench.accepts(&outputs).then(|| format!("{}: values under the previous scale", bench.name)));
    }
    assert_all_rejected(&accepted);
}

/// Large enough that only a part of the elements is sampled.
#[test]
#[cfg(feature = "cpu")]
fn unsampled_wrong_fragment_fails_the_checksums() {
    use calorimeter_zoo::{Device, Implementation, NativeDevices, Setup, open_operator};
    let [f32, bf16] = [Dtype::F32, Dtype::Bf16].map(Element::Float);
    for (name, element) in [
        ("gemm_multiple_run", f32),
        ("gemm_fp8_rowwise", bf16),
        ("matmul", f32),
        ("linear_bias", f32),
        ("ln_linear", f32),
    ] {
        let spec =
            Spec { axes: Axes::from([("m", 256), ("k", 2048), ("n", 4096)]), element, output: None, training: None };
        let problem = OperatorProblem { operator: name.parse().unwrap(), spec, seed: 3 };
        let (inputs, setup) =
            (problem.gate_inputs(), Setup { implementation: Implementation::Eager, device: Device::Cpu, sets: 1 });
        let references = problem.references(&inputs);
        let mut workload = open_operator(&problem, &inputs, setup, &mut NativeDevices::default()).unwrap();
        let right = workload.outputs().unwrap();
        problem.judge(&right, &references, false).unwrap_or_else(|mismatch| panic!("{name}: {mismatch}"));
        let sampled = &references[0].sample.cols;
        let gap = sampled.windows(2).find(|pair| pair[1] - pair[0] > 8).expect("the sample has gaps")[0] + 1;
        let mut outputs = right.clone();
        for at in (0..16).flat_map(|row| (0..8).map(move |col| row * 4096 + gap + col)) {
            outputs[0].values[at] = right[0].values[at + 8];
        }
        let judged = problem.judge(&outputs, &references, false);
        assert!(matches!(judged, Err(Mismatch::Sum { .. })), "{name}: {judged:?}");
    }
}

/// Operators that are only sampled if large, and have no checksums.
const SAMPLED_ONLY: &[&str] =
    &["attention", "attention_4d_causal", "qk_softmax", "conv2d_relu", "conv2d_bn", "softmax", "swiglu_mlp"];

#[test]
fn rotation_exposes_unsampled_wrong_elements() {
    let mut accepted = Vec::new();
    for bench in OperatorBench::for_operators(SAMPLED_ONLY) {
        let OperatorBench { name, problem, right, .. } = &bench;
        let moves = problem.operator.set_rotation(&problem.spec);
        assert!(moves.sets_differ(), "{name}");
        // Outputs of an activation are zero in many places.
        let largest = right[0].values.iter().fold(0.0, |largest: f32, &value| largest.max(value));
        let wrong = |mut outputs: Vec<Output>| {
            outputs[0].values[3..11].fill(largest);
            outputs
        };
        let inputs = moves.inputs_of_set(&bench.inputs, 1);
        let moved = |outputs: Vec<Output>| moves.rotate_back(outputs, 1);
        let next = outputs(problem, &inputs);
        assert!(problem.judge_against_outputs(&moved(next.clone()), right, false).is_ok(), "{name}");
        let judged = problem.judge_against_outputs(&moved(wrong(next)), &wrong(right.clone()), false);
        accepted.extend(judged.is_ok().then(|| name.clone()));
    }
    assert_all_rejected(&accepted);
}
