//! Mistakes of kernels for quantized layers, computed on the host. The gate must reject each in every model and scale
//! layout, and accept the kernel without it.

use calorimeter_recipes::format::ZeroPoint;
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element, FloatType, QuantConfig, QuantizedTensor, Recipe, Weight};
use calorimeter_shapes::Shape;
use calorimeter_zoo::gate::Mismatch;
use calorimeter_zoo::{
    Device, ExactLinear, Implementation, Matrix, NativeDevices, Output, OutputSample, Problem, Reference, Setup,
    Tensors, open,
};

/// Mistake in the quantized values or scales of an operand; returns false if the operand has nothing to confuse.
type OperandMistake = fn(&mut QuantizedTensor) -> bool;
/// Mistake in an output; the second argument is the previous content of its memory.
type OutputMistake = fn(&mut Output, &Output);

const SCALE_MISTAKES: &[(&str, OperandMistake)] = &[
    ("scales rotated by one", |operand| {
        operand.scales.rotate_right(1);
        let one = operand.zeros.len().min(1);
        operand.zeros.rotate_right(one);
        operand.scales.len() > 1
    }),
    ("one scale for all blocks", |operand| {
        let first = operand.scales[0];
        operand.scales.fill(first);
        operand.scales.len() > 1
    }),
    ("scale of the previous block", |operand| {
        let per_row = operand.scales.len() / operand.rows;
        operand.scales.chunks_mut(per_row.max(1)).for_each(|row| row.rotate_right(1));
        per_row > 1
    }),
    ("scale of the next row", |operand| {
        let per_row = operand.scales.len() / operand.rows;
        operand.scales.rotate_left(per_row);
        per_row > 0
    }),
    ("second-level row scales rotated by one", |operand| {
        let one = operand.outer_scales.len().min(1);
        operand.outer_scales.rotate_right(one);
        operand.outer_scales.len() > 1
    }),
    ("zero points omitted", |operand| {
        operand.zeros.fill(0.0);
        operand.format.zero != ZeroPoint::None
    }),
];

const THREAD_LEFT_OUT: &str = "elements of one thread in 64 not written";

const OUTPUT_MISTAKES: &[(&str, OutputMistake)] = &[
    ("1 % too large", |output, _| output.values.iter_mut().for_each(|value| *value *= 1.01)),
    ("1 % too small", |output, _| output.values.iter_mut().for_each(|value| *value *= 0.99)),
    ("two 16 x 8 fragments swapped", |output, _| {
        for row in 0..16 {
            (0..8).for_each(|col| output.values.swap(row * output.cols + col, row * output.cols + 24 + col));
        }
    }),
    ("nothing written", |output, before| output.values.clone_from(&before.values)),
    (THREAD_LEFT_OUT, |output, before| {
        let of_thread = (37..output.values.len()).step_by(64);
        of_thread.for_each(|at| output.values[at] = before.values[at]);
    }),
];

/// Recipes that cover every scale layout: rows, tensor, blocks of each size, two levels, powers of two, both kinds of
/// zero points, inputs quantized or not.
const RECIPES: &[&str] = &[
    "baseline",
    "int8wo",
    "int8dq",
    "int8adq-int4w-symm",
    "float8wo",
    "float8dq-row",
    "float8dq-tensor",
    "int4wo-32",
    "int4wo-128",
    "int4wo-256",
    "int4wo-128-hqq",
    "uintx-4-64",
    "mxfp8",
    "mxfp4",
    "nvfp4",
    "marlin-qqq",
    "q8_0",
    "q4_0",
];

/// Enough rows for scales and fragments; the sample is the complete output.
const SHAPES: &[(&str, [u64; 3])] = &[
    ("linear", [32, 512, 48]),
    ("ln_linear_relu", [32, 512, 48]),
    ("ln_linear_sigmoid", [32, 512, 48]),
    ("ln_linear_gelu", [32, 512, 48]),
    ("transformer_block", [2, 64, 1]),
];

/// Model under a recipe, with the gate's tensors.
struct LayerBench {
    name: String,
    problem: Problem,
    treatment: QuantConfig,
    tensors: Tensors,
    reference: Reference,
}

impl LayerBench {
    fn new(model: &str, [m, k, n]: [u64; 3], recipe: &str, dtype: Dtype) -> Self {
        let shape = Shape::new(m, k, n).unwrap();
        let problem = Problem { model: model.parse().unwrap(), shape, dtype, seed: 11 };
        let treatment = recipe.parse::<Recipe>().unwrap().quant_config(dtype, None).unwrap();
        let tensors = problem.gate_tensors();
        let reference = problem.reference(&tensors, &treatment).unwrap();
        Self { name: format!("{model} {recipe} {dtype}"), problem, treatment, tensors, reference }
    }

    /// Output of a kernel for an input and weights that `read` maps to the values it multiplies.
    fn output(&self, input: &Matrix, read: impl Fn(&Weight) -> Weight) -> Output {
        let as_read = QuantConfig { weight: None, ..self.treatment };
        let linears = self.tensors.weights.iter().map(|weight| ExactLinear::new(&read(weight), &as_read).unwrap());
        self.output_of_layers(input, &linears.collect::<Vec<_>>())
    }

    fn output_of_layers(&self, input: &Matrix, linears: &[ExactLinear]) -> Output {
        let Problem { model, shape, dtype, .. } = self.problem;
        let (rows, cols) = self.problem.layout().output;
        let (rows, cols) = (rows as usize, cols as usize);
        let whole = OutputSample { rows: (0..rows).collect(), cols: (0..cols).collect() };
        let values = model.reference(shape, input, linears, &whole);
        Output { rows, cols, values: values.into_iter().map(|value| dtype.round(value as f32)).collect() }
    }

    fn correct_output(&self, input: &Matrix) -> Output {
        self.output(input, |weight| self.treatment.effective_weight(weight).unwrap())
    }

    fn reads_four_bit_floats(&self) -> bool {
        self.treatment.input.is_some_and(|format| format.element == Element::E2m1)
    }

    /// True if the gate accepts the output; TF32 is allowed, as on CUDA.
    fn accepts(&self, output: &Output) -> bool {
        self.problem.judge(&self.treatment, output, &self.reference, true).is_ok()
    }
}

fn benches(dtypes: &[Dtype]) -> impl Iterator<Item = LayerBench> {
    let cases = SHAPES.iter().flat_map(|shape| RECIPES.iter().map(move |recipe| (shape, recipe)));
    cases.flat_map(move |((model, shape), recipe)| {
        dtypes.iter().map(move |&dtype| LayerBench::new(model, *shape, recipe, dtype))
    })
}

/// Dequantized values with a mistake; `None` if the mistake does not apply.
fn dequantize_mistaken(quantized: &QuantizedTensor, mistake: OperandMistake) -> Option<Vec<f32>> {
    let mut quantized = quantized.clone();
    mistake(&mut quantized).then(|| quantized.dequantize())
}

#[test]
fn correct_kernels_pass() {
    for bench in benches(&Dtype::ALL) {
        let LayerBench { name, problem, treatment, tensors, reference } = &bench;
        let judged = problem.judge(treatment, &bench.correct_output(&tensors.input), reference, false);
        judged.unwrap_or_else(|mismatch| panic!("{name}: {mismatch}"));
    }
}

/// Emulates tensor cores in TF32: mantissas are truncated to ten bits.
#[test]
fn truncated_tf32_weights_pass_if_allowed() {
    let truncate = |value: &f32| f32::from_bits(value.to_bits() & !0x1fff);
    for bench in benches(&[Dtype::F32]) {
        let output = bench.output(&bench.tensors.input, |weight| {
            let correct = bench.treatment.effective_weight(weight).unwrap();
            Weight::new(correct.n(), correct.k(), correct.values().iter().map(truncate).collect(), Dtype::F32)
        });
        assert!(bench.accepts(&output), "{}", bench.name);
    }
}

#[test]
fn misplaced_weight_scales_are_rejected() {
    let mut accepted = Vec::new();
    for bench in benches(&[Dtype::Bf16]) {
        for (mistake, of) in SCALE_MISTAKES {
            let read = |weight: &Weight| {
                let wrong =
                    bench.treatment.quantize(weight).unwrap().and_then(|stored| dequantize_mistaken(&stored, *of))?;
                Some(Weight::new(weight.n(), weight.k(), wrong, Dtype::F32))
            };
            // The mistake does not apply to any weight of this recipe.
            if bench.tensors.weights.iter().all(|weight| read(weight).is_none()) {
                continue;
            }
            let correct = |weight: &Weight| bench.treatment.effective_weight(weight).unwrap();
            let output = bench.output(&bench.tensors.input, |weight| read(weight).unwrap_or_else(|| correct(weight)));
            accepted.extend(bench.accepts(&output).then(|| format!("{}: {mistake}", bench.name)));
        }
    }
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

/// Arithmetic of a block of ggml: recipe, name, scale for the value with the largest magnitude, rounding of scaled values.
type BlockArithmetic = (&'static str, &'static str, fn(f32) -> f32, fn(f32) -> f32);

const BLOCK_ARITHMETIC: &[BlockArithmetic] = &[
    ("q8_0", "correct", |max| max.abs() / 127.0, f32::round),
    ("q8_0", "amax / 127.5", |max| max.abs() / 127.5, f32::round),
    ("q8_0", "ties to even", |max| max.abs() / 127.0, f32::round_ties_even),
    ("q8_0", "truncated", |max| max.abs() / 127.0, f32::trunc),
    ("q4_0", "correct", |max| max / -8.0, |x| (x + 8.5).trunc().min(15.0) - 8.0),
    ("q4_0", "max / -7.5", |max| max / -7.5, |x| (x + 8.5).trunc().min(15.0) - 8.0),
    ("q4_0", "scale without a sign", |max| max.abs() / 8.0, |x| (x + 8.5).trunc().min(15.0) - 8.0),
    ("q4_0", "ties to even", |max| max / -8.0, |x| x.round_ties_even().clamp(-8.0, 7.0)),
];

/// Blocks of the weight have the scale 1 (`q8_0`) or -1 (`q4_0`), and all values but the first lie between two quantized values.
#[test]
fn wrong_arithmetic_of_ggml_blocks_is_rejected() {
    for &(recipe, name, scale, round) in BLOCK_ARITHMETIC {
        let mut bench = LayerBench::new("linear", [32, 512, 48], recipe, Dtype::F32);
        let (first, steps) = if recipe == "q8_0" { (127.0, 253) } else { (8.0, 15) };
        let between = |i: usize| (i.wrapping_mul(0x9E37_79B9) >> 7) % steps;
        let tie = |i: usize| if i.is_multiple_of(32) { first } else { between(i) as f32 - (steps / 2) as f32 - 0.5 };
        bench.tensors.weights = vec![Weight::new(48, 512, (0..48 * 512).map(tie).collect(), Dtype::F32)];
        bench.reference = bench.problem.reference(&bench.tensors, &bench.treatment).unwrap();
        let output = bench.output(&bench.tensors.input, |weight| {
            let quantize = |block: &[f32]| {
                let max = block.iter().fold(0.0f32, |max, &x| if x.abs() > max.abs() { x } else { max });
                let (scale, stored) = (scale(max), Dtype::F16.round(scale(max)));
                block.iter().map(|x| round(x / scale) * stored).collect::<Vec<_>>()
            };
            let values = weight.values().chunks(32).flat_map(quantize).collect();
            Weight::new(weight.n(), weight.k(), values, Dtype::F32)
        });
        assert_eq!(bench.accepts(&output), name == "correct", "{recipe}, {name}");
    }
}

#[test]
fn dropped_k_tail_is_rejected() {
    let mut accepted = Vec::new();
    for bench in benches(&[Dtype::Bf16]) {
        for tile in [8, 32] {
            let output = bench.output(&bench.tensors.input, |weight| {
                let correct = bench.treatment.effective_weight(weight).unwrap();
                let masked =
                    |(at, value): (usize, &f32)| if at % correct.k() + tile < correct.k() { *value } else { 0.0 };
                let values = correct.values().iter().enumerate().map(masked).collect();
                Weight::new(correct.n(), correct.k(), values, Dtype::F32)
            });
            accepted.extend(bench.accepts(&output).then(|| format!("{}: the last {tile}", bench.name)));
        }
    }
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

#[test]
fn misplaced_input_scales_are_rejected() {
    let mut accepted = Vec::new();
    for bench in benches(&[Dtype::Bf16]).filter(|bench| bench.name.starts_with("linear ")) {
        let Matrix { rows, cols, values } = &bench.tensors.input;
        let Some(format) = bench.treatment.input_format(*rows) else { continue };
        let quantized = quantize(values, *cols, format);
        let correct = bench.tensors.weights.iter().map(|weight| bench.treatment.effective_weight(weight).unwrap());
        let plain = QuantConfig::unquantized(Dtype::F32);
        let layers: Vec<_> = correct.map(|weight| ExactLinear::new(&weight, &plain).unwrap()).collect();
        let of = |values: Vec<f32>| Matrix { rows: *rows, cols: *cols, values: values.into() };
        assert!(bench.accepts(&bench.output_of_layers(&of(quantized.dequantize()), &layers)), "{}", bench.name);
        for (mistake, wrong) in SCALE_MISTAKES {
            let Some(wrong) = dequantize_mistaken(&quantized, *wrong) else { continue };
            let output = bench.output_of_layers(&of(wrong), &layers);
            accepted.extend(bench.accepts(&output).then(|| format!("{}: of the input, {mistake}", bench.name)));
        }
    }
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

#[test]
fn local_and_small_output_errors_are_rejected() {
    let mut accepted = Vec::new();
    for bench in benches(&Dtype::ALL) {
        let correct = bench.correct_output(&bench.tensors.input);
        let before = bench.correct_output(&bench.problem.tensors().input);
        for (mistake, of) in OUTPUT_MISTAKES {
            if bench.name.starts_with("ln_linear_sigmoid")
                && bench.reads_four_bit_floats()
                && *mistake == THREAD_LEFT_OUT
            {
                // Sigmoid outputs are close to each other, and inputs that cross an e2m1 boundary may move them as far.
                continue;
            }
            let mut output = correct.clone();
            of(&mut output, &before);
            accepted.extend(bench.accepts(&output).then(|| format!("{}: {mistake}", bench.name)));
        }
    }
    assert!(accepted.is_empty(), "accepted: {accepted:#?}");
}

/// Emulates an output too large to be compared element by element: neither set is compared with its reference.
#[test]
fn rotation_exposes_a_persistently_wrong_element() {
    // Four-bit inputs that cross a boundary may move an output as far as a sign change does.
    for bench in benches(&[Dtype::Bf16]).filter(|bench| !bench.reads_four_bit_floats()) {
        let LayerBench { name, problem, treatment, tensors, .. } = &bench;
        let [first, second] = [0, 1].map(|set| bench.correct_output(&problem.input_of_set(tensors, set)));
        let moved = |output: &Output| problem.rotate_back(output.clone(), 1);
        problem
            .judge_against_output(treatment, &moved(&second), &first, false)
            .unwrap_or_else(|why| panic!("{name}: {why}"));
        let wrong = |output: &Output| {
            let mut output = output.clone();
            (0..8).for_each(|col| output.values[5 * output.cols + col] *= -1.0);
            output
        };
        let judged = problem.judge_against_output(treatment, &moved(&wrong(&second)), &wrong(&first), false);
        assert!(judged.is_err(), "{name}");
    }
}

/// Large enough that only a part of the elements is sampled.
#[test]
fn unsampled_errors_fail_the_checksums() {
    let shape = Shape::new(2048, 512, 512).unwrap();
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let problem = Problem { model: "linear".parse().unwrap(), shape, dtype, seed: 3 };
        let treatment = "int8dq".parse::<Recipe>().unwrap().quant_config(dtype, None).unwrap();
        let tensors = problem.gate_tensors();
        let reference = problem.reference(&tensors, &treatment).unwrap();
        let setup = Setup { implementation: Implementation::Eager, device: Device::Cpu, sets: 1 };
        let mut workload = open(&problem, &tensors, &treatment, setup, &mut NativeDevices::default()).unwrap();
        let correct = workload.output().unwrap();
        problem.judge(&treatment, &correct, &reference, false).unwrap();
        let row = (0..2048).find(|row| !reference.sample.rows.contains(row)).expect("the sample has gaps");
        let mut output = correct.clone();
        (0..8).for_each(|col| output.values.swap(row * 512 + col, row * 512 + 8 + col));
        let judged = problem.judge(&treatment, &output, &reference, false);
        assert!(matches!(judged, Err(Mismatch::Sum { .. })), "{dtype}: {judged:?}");
    }
}
