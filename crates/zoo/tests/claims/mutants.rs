//! Mistakes of kernels for quantized layers, computed on the host: the gate refuses each, in every model and layout of
//! scales, and takes the same kernel without it.

use calorimeter_recipes::format::Zero;
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element, FloatType, Quantized, Recipe, Treatment, Weight};
use calorimeter_shapes::Shape;
use calorimeter_zoo::gate::Mismatch;
use calorimeter_zoo::{
    Device, ExactLinear, Implementation, Machines, Matrix, Output, Problem, Reference, Sample, Setup, Tensors, open,
};

/// A mistake in how a weight or an input is read; answers whether there is anything to mistake.
type OfOperand = fn(&mut Quantized) -> bool;
/// A mistake in an output; the second is what lay in its memory before.
type OfOutput = fn(&mut Output, &Output);

const OF_SCALES: &[(&str, OfOperand)] = &[
    ("scales rolled by one", |operand| {
        operand.scales.rotate_right(1);
        let one = operand.zeros.len().min(1);
        operand.zeros.rotate_right(one);
        operand.scales.len() > 1
    }),
    ("one scale for all", |operand| {
        let first = operand.scales[0];
        operand.scales.fill(first);
        operand.scales.len() > 1
    }),
    ("the scale of the block before", |operand| {
        let per_row = operand.scales.len() / operand.rows;
        operand.scales.chunks_mut(per_row.max(1)).for_each(|row| row.rotate_right(1));
        per_row > 1
    }),
    ("the scale of the row after", |operand| {
        let per_row = operand.scales.len() / operand.rows;
        operand.scales.rotate_left(per_row);
        per_row > 0
    }),
    ("rows' scales of the second level rolled by one", |operand| {
        let one = operand.outer.len().min(1);
        operand.outer.rotate_right(one);
        operand.outer.len() > 1
    }),
    ("zero points left out", |operand| {
        operand.zeros.fill(0.0);
        operand.format.zero != Zero::None
    }),
];

const LEFT_OUT: &str = "what one thread of 64 writes left out";

const OF_OUTPUTS: &[(&str, OfOutput)] = &[
    ("a hundredth too large", |output, _| output.values.iter_mut().for_each(|value| *value *= 1.01)),
    ("a hundredth too small", |output, _| output.values.iter_mut().for_each(|value| *value *= 0.99)),
    ("two fragments of 16 x 8 exchanged", |output, _| {
        for row in 0..16 {
            (0..8).for_each(|col| output.values.swap(row * output.cols + col, row * output.cols + 24 + col));
        }
    }),
    ("nothing written", |output, before| output.values.clone_from(&before.values)),
    (LEFT_OUT, |output, before| {
        let of_thread = (37..output.values.len()).step_by(64);
        of_thread.for_each(|at| output.values[at] = before.values[at]);
    }),
];

/// One for each layout of scales: rows, a tensor, blocks of each size, two levels, powers of two, zero points of both
/// kinds, inputs quantized or not.
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
];

/// As many rows as scales and fragments need; the sample is the whole output.
const SHAPES: &[(&str, [u64; 3])] = &[
    ("linear", [32, 512, 48]),
    ("ln_linear_relu", [32, 512, 48]),
    ("ln_linear_sigmoid", [32, 512, 48]),
    ("ln_linear_gelu", [32, 512, 48]),
    ("transformer_block", [2, 64, 1]),
];

/// A model under a recipe, with the gate's data.
struct Bench {
    name: String,
    problem: Problem,
    treatment: Treatment,
    tensors: Tensors,
    reference: Reference,
}

impl Bench {
    fn new(model: &str, [m, k, n]: [u64; 3], recipe: &str, dtype: Dtype) -> Self {
        let shape = Shape::new(m, k, n).unwrap();
        let problem = Problem { model: model.parse().unwrap(), shape, dtype, seed: 11 };
        let treatment = recipe.parse::<Recipe>().unwrap().treatment(dtype, None).unwrap();
        let tensors = problem.gate_tensors();
        let reference = problem.reference(&tensors, &treatment).unwrap();
        Self { name: format!("{model} {recipe} {dtype}"), problem, treatment, tensors, reference }
    }

    /// What a kernel computes of an input, and of weights that it reads in its own way.
    fn output(&self, input: &Matrix, read: impl Fn(&Weight) -> Weight) -> Output {
        let as_read = Treatment { weight: None, ..self.treatment };
        let linears = self.tensors.weights.iter().map(|weight| ExactLinear::new(&read(weight), &as_read).unwrap());
        self.of_layers(input, &linears.collect::<Vec<_>>())
    }

    fn of_layers(&self, input: &Matrix, linears: &[ExactLinear]) -> Output {
        let Problem { model, shape, dtype, .. } = self.problem;
        let (rows, cols) = self.problem.layout().output;
        let (rows, cols) = (rows as usize, cols as usize);
        let whole = Sample { rows: (0..rows).collect(), cols: (0..cols).collect() };
        let values = model.reference(shape, input, linears, &whole);
        Output { rows, cols, values: values.into_iter().map(|value| dtype.round(value as f32)).collect() }
    }

    fn without_mistake(&self, input: &Matrix) -> Output {
        self.output(input, |weight| self.treatment.effective_weight(weight).unwrap())
    }

    fn reads_four_bit_floats(&self) -> bool {
        self.treatment.input.is_some_and(|format| format.element == Element::E2m1)
    }

    /// As on CUDA, where products of f32 may run in TF32.
    fn takes(&self, output: &Output) -> bool {
        self.problem.judge(&self.treatment, output, &self.reference, true).is_ok()
    }
}

fn benches(dtypes: &[Dtype]) -> impl Iterator<Item = Bench> {
    let cases = SHAPES.iter().flat_map(|shape| RECIPES.iter().map(move |recipe| (shape, recipe)));
    cases.flat_map(move |((model, shape), recipe)| {
        dtypes.iter().map(move |&dtype| Bench::new(model, *shape, recipe, dtype))
    })
}

/// A weight as codes and scales say, of which one is mistaken.
fn mistaken(quantized: &Quantized, mistake: OfOperand) -> Option<Vec<f32>> {
    let mut quantized = quantized.clone();
    mistake(&mut quantized).then(|| quantized.dequantize())
}

#[test]
fn kernels_without_a_mistake_pass() {
    for bench in benches(&Dtype::ALL) {
        let Bench { name, problem, treatment, tensors, reference } = &bench;
        let judged = problem.judge(treatment, &bench.without_mistake(&tensors.input), reference, false);
        judged.unwrap_or_else(|mismatch| panic!("{name}: {mismatch}"));
    }
}

/// As tensor cores do that multiply f32 as TF32: what does not fit into ten bits of mantissa is cut off.
#[test]
fn kernels_that_cut_their_weights_to_tf32_pass_where_that_is_allowed() {
    let cut = |value: &f32| f32::from_bits(value.to_bits() & !0x1fff);
    for bench in benches(&[Dtype::F32]) {
        let output = bench.output(&bench.tensors.input, |weight| {
            let right = bench.treatment.effective_weight(weight).unwrap();
            Weight::new(right.n(), right.k(), right.values().iter().map(cut).collect(), Dtype::F32)
        });
        assert!(bench.takes(&output), "{}", bench.name);
    }
}

#[test]
fn scales_of_weights_from_the_wrong_place_are_refused() {
    let mut taken = Vec::new();
    for bench in benches(&[Dtype::Bf16]) {
        for (mistake, of) in OF_SCALES {
            let read = |weight: &Weight| {
                let wrong = bench.treatment.quantize(weight).unwrap().and_then(|stored| mistaken(&stored, *of))?;
                Some(Weight::new(weight.n(), weight.k(), wrong, Dtype::F32))
            };
            // What has no such scale cannot be mistaken in it.
            if bench.tensors.weights.iter().all(|weight| read(weight).is_none()) {
                continue;
            }
            let right = |weight: &Weight| bench.treatment.effective_weight(weight).unwrap();
            let output = bench.output(&bench.tensors.input, |weight| read(weight).unwrap_or_else(|| right(weight)));
            taken.extend(bench.takes(&output).then(|| format!("{}: {mistake}", bench.name)));
        }
    }
    assert!(taken.is_empty(), "taken for right: {taken:#?}");
}

#[test]
fn products_that_leave_out_the_last_of_their_factors_are_refused() {
    let mut taken = Vec::new();
    for bench in benches(&[Dtype::Bf16]) {
        for tile in [8, 32] {
            let output = bench.output(&bench.tensors.input, |weight| {
                let right = bench.treatment.effective_weight(weight).unwrap();
                let kept = |(at, value): (usize, &f32)| if at % right.k() + tile < right.k() { *value } else { 0.0 };
                let values = right.values().iter().enumerate().map(kept).collect();
                Weight::new(right.n(), right.k(), values, Dtype::F32)
            });
            taken.extend(bench.takes(&output).then(|| format!("{}: the last {tile}", bench.name)));
        }
    }
    assert!(taken.is_empty(), "taken for right: {taken:#?}");
}

#[test]
fn scales_of_inputs_from_the_wrong_place_are_refused() {
    let mut taken = Vec::new();
    for bench in benches(&[Dtype::Bf16]).filter(|bench| bench.name.starts_with("linear ")) {
        let Matrix { rows, cols, values } = &bench.tensors.input;
        let Some(format) = bench.treatment.input(*rows) else { continue };
        let quantized = quantize(values, *cols, format);
        let right = bench.tensors.weights.iter().map(|weight| bench.treatment.effective_weight(weight).unwrap());
        let plain = Treatment::none(Dtype::F32);
        let layers: Vec<_> = right.map(|weight| ExactLinear::new(&weight, &plain).unwrap()).collect();
        let of = |values: Vec<f32>| Matrix { rows: *rows, cols: *cols, values: values.into() };
        assert!(bench.takes(&bench.of_layers(&of(quantized.dequantize()), &layers)), "{}", bench.name);
        for (mistake, wrong) in OF_SCALES {
            let Some(wrong) = mistaken(&quantized, *wrong) else { continue };
            let output = bench.of_layers(&of(wrong), &layers);
            taken.extend(bench.takes(&output).then(|| format!("{}: of the input, {mistake}", bench.name)));
        }
    }
    assert!(taken.is_empty(), "taken for right: {taken:#?}");
}

#[test]
fn outputs_that_are_wrong_in_places_or_by_little_are_refused() {
    let mut taken = Vec::new();
    for bench in benches(&Dtype::ALL) {
        let right = bench.without_mistake(&bench.tensors.input);
        let before = bench.without_mistake(&bench.problem.tensors().input);
        for (mistake, of) in OF_OUTPUTS {
            if bench.name.starts_with("ln_linear_sigmoid") && bench.reads_four_bit_floats() && *mistake == LEFT_OUT {
                // Outputs of a sigmoid differ by little, and inputs that cross a boundary of e2m1 may move them as far.
                continue;
            }
            let mut output = right.clone();
            of(&mut output, &before);
            taken.extend(bench.takes(&output).then(|| format!("{}: {mistake}", bench.name)));
        }
    }
    assert!(taken.is_empty(), "taken for right: {taken:#?}");
}

/// As where an output is too large to be compared value by value: neither set is held against its reference.
#[test]
fn a_place_that_is_always_wrong_is_refused_by_the_next_buffer_set() {
    // Inputs of four bits that cross a boundary may move an output as far as its sign does.
    for bench in benches(&[Dtype::Bf16]).filter(|bench| !bench.reads_four_bit_floats()) {
        let Bench { name, problem, treatment, tensors, .. } = &bench;
        let [first, second] = [0, 1].map(|set| bench.without_mistake(&problem.input_of_set(tensors, set)));
        let moved = |output: &Output| problem.as_of_first_set(output.clone(), 1);
        problem.judge_beside(treatment, &moved(&second), &first, false).unwrap_or_else(|why| panic!("{name}: {why}"));
        let wrong = |output: &Output| {
            let mut output = output.clone();
            (0..8).for_each(|col| output.values[5 * output.cols + col] *= -1.0);
            output
        };
        let judged = problem.judge_beside(treatment, &moved(&wrong(&second)), &wrong(&first), false);
        assert!(judged.is_err(), "{name}");
    }
}

/// Large enough that not every value is compared by itself.
#[test]
fn eight_values_that_are_wrong_where_nothing_is_sampled_are_refused() {
    let shape = Shape::new(2048, 512, 512).unwrap();
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let problem = Problem { model: "linear".parse().unwrap(), shape, dtype, seed: 3 };
        let treatment = "int8dq".parse::<Recipe>().unwrap().treatment(dtype, None).unwrap();
        let tensors = problem.gate_tensors();
        let reference = problem.reference(&tensors, &treatment).unwrap();
        let setup = Setup { implementation: Implementation::Eager, device: Device::Cpu, sets: 1 };
        let mut workload = open(&problem, &tensors, &treatment, setup, &mut Machines::default()).unwrap();
        let right = workload.output().unwrap();
        problem.judge(&treatment, &right, &reference, false).unwrap();
        let row = (0..2048).find(|row| !reference.sample.rows.contains(row)).expect("the sample has gaps");
        let mut output = right.clone();
        (0..8).for_each(|col| output.values.swap(row * 512 + col, row * 512 + 8 + col));
        let judged = problem.judge(&treatment, &output, &reference, false);
        assert!(matches!(judged, Err(Mismatch::Sum { .. })), "{dtype}: {judged:?}");
    }
}
