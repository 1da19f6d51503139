//! The mathematics of each model against small steps, and what hand-written backward passes get wrong against the gate.

use super::architecture::{Architecture, Exactly, Sides};
use super::exact_layers::{ExactLayers, Quantized};
use super::rows::{Rows, dot};
use super::{LnLinear, Made, Pass, SwigluMlp, TrainedModel, TransformerBlock, passes};
use crate::{Activation, Cost, Exact, Matrix, Operand, Operator, OperatorProblem, Output, Sample, Signature, Spec};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Codes, Dtype, Element, Float8Training, FloatType, Recipe};
use calorimeter_shapes::Axes;
use std::cell::RefCell;
use std::collections::HashMap;

fn spec([m, k, n]: [u64; 3], dtype: Dtype, recipe: &str) -> Spec {
    let training = recipe.parse::<Recipe>().unwrap().training().unwrap();
    Spec { axes: Axes::from([("m", m), ("k", k), ("n", n)]), element: Element::Float(dtype), output: None, training }
}

/// Steps along every parameter and the input, a few places of each.
fn gradients_are_what_small_steps_find<A: Architecture>(model: A, size: [u64; 3]) {
    const STEP: f64 = 1e-5;
    let spec = spec(size, Dtype::F32, "baseline");
    let layers = Quantized { training: Float8Training::none(), dtype: Dtype::F32 };
    let rows = |matrix: &Matrix| Rows {
        cols: matrix.cols,
        values: matrix.values.iter().map(|&value| f64::from(value)).collect(),
    };
    let Sides { rows: count, output, .. } = model.sides(&spec);
    let [forward, ..] = passes(model);
    let given: Vec<Rows> =
        forward.inputs(&spec).iter().zip(3..).map(|(given, seed)| rows(&given.matrix(seed))).collect();
    let gradient = rows(&Operand::normal(count, output, spec.element).matrix(1));
    let computed = |given: &[Rows], gradient| model.exact(&layers, &given[0], &given[1..], gradient);
    let loss = |given: &[Rows]| dot(&computed(given, None).output.values, &gradient.values);
    let Exactly { gradients: Some((input, parameters)), .. } = computed(&given, Some(&gradient)) else {
        panic!("a gradient was given")
    };
    for (which, found) in std::iter::once(&input).chain(&parameters).enumerate() {
        assert_eq!((found.cols, found.values.len()), (given[which].cols, given[which].values.len()));
        for at in (0..found.values.len()).step_by(found.values.len() / 7 + 1) {
            let moved = |step: f64| {
                let mut given = given.clone();
                given[which].values[at] += step;
                loss(&given)
            };
            let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let (found, name) = (found.values[at], model.name());
            assert!(
                (slope - found).abs() < 1e-6 * (1.0 + slope.abs()),
                "{name} {which} {at}: {found}, steps find {slope}"
            );
        }
    }
}

/// What is wrong in one layer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bug {
    /// The weight as it lies, on the way back.
    NoTransposeOfTheWeight,
    /// The gradient of the weight as that of its transpose.
    NoTransposeOfTheGradient,
    /// The gradient of the weight with its operands exchanged.
    TheOtherOperand,
    /// The gradient's codes under the scales that the input had.
    ScaleOfTheForwardPass,
    /// The gradient of the step before, which was the same.
    LeftOver,
}

/// Layers of which one has a bug.
struct Mutant {
    right: Quantized,
    layer: usize,
    bug: Bug,
    inputs: RefCell<HashMap<usize, Rows>>,
}

impl ExactLayers for Mutant {
    fn output(&self, layer: usize, input: &Rows, weight: &Rows) -> Rows {
        self.inputs.borrow_mut().insert(layer, input.clone());
        self.right.output(layer, input, weight)
    }

    fn grad_input(&self, layer: usize, gradient: &Rows, weight: &Rows) -> Rows {
        let right = || self.right.grad_input(layer, gradient, weight);
        match self.bug {
            _ if layer != self.layer => right(),
            Bug::NoTransposeOfTheWeight => self.right.grad_input(layer, gradient, &weight.transposed()),
            Bug::ScaleOfTheForwardPass => {
                let training = self.right.training;
                let (forward, back) = (training.output.expect("in float8"), training.grad_input.expect("in float8"));
                let codes = |of: &Rows, format| {
                    let rounded: Vec<f32> =
                        of.values.iter().map(|&value| self.right.dtype.round(value as f32)).collect();
                    quantize(&rounded, of.cols, format)
                };
                let mut wrong = codes(gradient, back.left.expect("in codes"));
                wrong.scales = codes(&self.inputs.borrow()[&layer], forward.left.expect("in codes")).scales;
                let wrong = wrong.dequantize().into_iter().map(f64::from).collect();
                let weight = codes(&weight.transposed(), back.right.expect("in codes"))
                    .dequantize()
                    .into_iter()
                    .map(f64::from)
                    .collect();
                Rows { cols: gradient.cols, values: wrong }.times(&Rows { cols: gradient.cols, values: weight })
            }
            _ => right(),
        }
    }

    fn grad_weight(&self, layer: usize, gradient: &Rows, input: &Rows) -> Rows {
        let right = || self.right.grad_weight(layer, gradient, input);
        match self.bug {
            _ if layer != self.layer => right(),
            Bug::NoTransposeOfTheGradient => right().transposed(),
            Bug::TheOtherOperand => self.right.grad_weight(layer, input, gradient),
            Bug::LeftOver => right().map(|value| 2.0 * value),
            _ => right(),
        }
    }
}

/// What a pass answers with such layers, rounded as it is stored.
fn answered<A: Architecture>(
    pass: &TrainedModel<A>,
    layers: &dyn ExactLayers,
    spec: &Spec,
    inputs: &[Matrix],
) -> Vec<Output> {
    let slots = pass.outputs(spec);
    let whole = |side: u64| (0..side as usize).collect();
    let sample = |slot: &crate::Slot| Sample { rows: whole(slot.rows), cols: whole(slot.cols) };
    let samples: Vec<(usize, Sample)> = slots.iter().map(sample).enumerate().collect();
    let computed = pass.computed_by(layers, spec, inputs, &samples);
    let output = |(slot, values): (&crate::Slot, Vec<f64>)| {
        let stored = |value: f64| slot.element.decode(slot.element.encode(value as f32));
        let (rows, cols) = (slot.rows as usize, slot.cols as usize);
        Output { rows, cols, values: values.into_iter().map(stored).collect() }
    };
    slots.iter().zip(computed).map(output).collect()
}

/// Each bug in each layer is refused under each recipe, and the same without a bug passes.
fn bugs_are_refused<A: Architecture>(model: A, size: [u64; 3]) {
    let float8 = ["tensorwise", "rowwise", "rowwise_with_gw_hp", "mxfp8"].map(|recipe| (Dtype::Bf16, recipe));
    for (dtype, recipe) in [Dtype::F32, Dtype::Bf16].map(|dtype| (dtype, "baseline")).into_iter().chain(float8) {
        let spec = spec(size, dtype, recipe);
        let training = spec.training.map_or(Float8Training::none(), |recipe| recipe.training());
        for pass in
            passes(model).iter().filter(|pass| [Pass::Backward, Pass::AdamwStep, Pass::SgdStep].contains(&pass.pass))
        {
            let problem =
                OperatorProblem { operator: pass.name().parse::<Operator>().unwrap(), spec: spec.clone(), seed: 7 };
            let inputs = problem.gate_inputs();
            let references = problem.references(&inputs);
            let quantized = || Quantized { training, dtype };
            let judged = |outputs: &[Output]| problem.judge(outputs, &references, false);
            let right = answered(pass, &quantized(), &spec, &inputs);
            judged(&right).unwrap_or_else(|why| panic!("{} {recipe} {dtype}: the twin: {why}", pass.name()));
            let mut taken = Vec::new();
            for (layer, [n, k]) in model.layers(&spec).into_iter().enumerate() {
                let square = n == k;
                for (bug, there) in [
                    (Bug::NoTransposeOfTheWeight, square),
                    (Bug::NoTransposeOfTheGradient, square),
                    (Bug::TheOtherOperand, square),
                    (Bug::ScaleOfTheForwardPass, square && training.output.is_some() && training.grad_input.is_some()),
                    (Bug::LeftOver, true),
                ] {
                    let mutant = Mutant { right: quantized(), layer, bug, inputs: RefCell::default() };
                    let passes = there && judged(&answered(pass, &mutant, &spec, &inputs)).is_ok();
                    taken.extend(passes.then_some((layer, bug)));
                }
            }
            // Gradients that changed places.
            let places: Vec<usize> = (0..right.len())
                .filter(|&at| matches!(pass.results(&spec)[at], Made::GradInput | Made::Gradient(_)))
                .collect();
            for (&a, &b) in places.iter().flat_map(|a| places.iter().map(move |b| (a, b))).filter(|(a, b)| a < b) {
                let mut swapped = right.clone();
                swapped.swap(a, b);
                let same = (right[a].rows, right[a].cols) == (right[b].rows, right[b].cols);
                assert!(!same || judged(&swapped).is_err(), "{} {recipe} {dtype}: {a} for {b}", pass.name());
            }
            assert!(taken.is_empty(), "{} {recipe} {dtype}: taken for right: {taken:?}", pass.name());
        }
    }
}

#[test]
fn gradients_of_ln_linear_are_what_small_steps_find() {
    for activation in Activation::ALL {
        gradients_are_what_small_steps_find(LnLinear(activation), [5, 12, 7]);
    }
}

#[test]
fn bugs_in_the_way_back_of_ln_linear_are_refused() {
    for activation in Activation::ALL {
        bugs_are_refused(LnLinear(activation), [64, 64, 64]);
    }
}

/// Three times the products of the forward pass, which are twice their multiply-adds.
#[test]
fn a_step_counts_six_times_m_k_n() {
    let [_, backward, both, ..] = passes(LnLinear(Activation::Relu));
    let spec = spec([8, 16, 32], Dtype::F32, "baseline");
    assert_eq!((backward.flops(&spec), both.flops(&spec)), (4 * 8 * 16 * 32, 6 * 8 * 16 * 32));
}

#[test]
fn gradients_of_a_gated_mlp_are_what_small_steps_find() {
    gradients_are_what_small_steps_find(SwigluMlp, [5, 12, 7]);
}

#[test]
fn bugs_in_the_way_back_of_a_gated_mlp_are_refused() {
    bugs_are_refused(SwigluMlp, [64, 64, 64]);
}

#[test]
fn gradients_of_a_transformer_block_are_what_small_steps_find() {
    gradients_are_what_small_steps_find(TransformerBlock, [2, 16, 1]);
}

#[test]
fn bugs_in_the_way_back_of_a_transformer_block_are_refused() {
    bugs_are_refused(TransformerBlock, [4, 64, 1]);
}

/// What a reference leaves out of a large model is nothing beside what it computes.
#[test]
fn gradients_of_loud_rows_are_those_of_all() {
    let spec = spec([16, 64, 1], Dtype::F32, "baseline");
    let [_, _, both, ..] = passes(TransformerBlock).map(|pass| TrainedModel { budget: 1, ..pass });
    let (slots, samples) =
        (both.outputs(&spec), |output: usize| both.sample(&spec, output, &both.outputs(&spec)[output]));
    let inputs: Vec<Matrix> = both.inputs(&spec).iter().zip(4..).map(|(given, seed)| given.gate_matrix(seed)).collect();
    assert_eq!((slots[0].rows, samples(0).rows.len()), (256, 64));
    let some: Vec<(usize, Sample)> = (0..slots.len()).map(|output| (output, samples(output))).collect();
    let mut all = some.clone();
    // Every row of the output, and so the gradients of every row.
    all[0].1.rows = (0..256).collect();
    let (some, all) = (both.references(&spec, &inputs, &some), both.references(&spec, &inputs, &all));
    for (output, (some, all)) in some.iter().zip(&all).enumerate().skip(1) {
        let error: f64 = some.iter().zip(all).map(|(some, all)| (some - all).powi(2)).sum();
        let power: f64 = all.iter().map(|value| value * value).sum();
        assert!((error / power).sqrt() < 1e-6, "{output}: {:e}", (error / power).sqrt());
    }
}
