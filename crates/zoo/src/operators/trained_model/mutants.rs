//! Checks of the references against finite differences, and of the gate against typical bugs of hand-written backward
//! passes.

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

/// Compares gradients with finite differences at several elements of the input and of each parameter.
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
    let inputs: Vec<Rows> =
        forward.inputs(&spec).iter().zip(3..).map(|(input, seed)| rows(&input.matrix(seed))).collect();
    let gradient = rows(&Operand::normal(count, output, spec.element).matrix(1));
    let computed = |inputs: &[Rows], gradient| model.exact(&layers, &inputs[0], &inputs[1..], gradient);
    let loss = |inputs: &[Rows]| dot(&computed(inputs, None).output.values, &gradient.values);
    let Exactly { gradients: Some((input, parameters)), .. } = computed(&inputs, Some(&gradient)) else {
        panic!("gradients are computed")
    };
    for (operand, analytic) in std::iter::once(&input).chain(&parameters).enumerate() {
        assert_eq!((analytic.cols, analytic.values.len()), (inputs[operand].cols, inputs[operand].values.len()));
        for at in (0..analytic.values.len()).step_by(analytic.values.len() / 7 + 1) {
            let perturbed = |step: f64| {
                let mut inputs = inputs.clone();
                inputs[operand].values[at] += step;
                loss(&inputs)
            };
            let numeric = (perturbed(STEP) - perturbed(-STEP)) / (2.0 * STEP);
            let (analytic, name) = (analytic.values[at], model.name());
            assert!(
                (numeric - analytic).abs() < 1e-6 * (1.0 + numeric.abs()),
                "{name} {operand} {at}: {analytic}, finite difference {numeric}"
            );
        }
    }
}

/// Bug in one linear layer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bug {
    /// Input gradient with the transposed weights.
    NoTransposeOfTheWeight,
    /// Transposed weight gradient.
    NoTransposeOfTheGradient,
    /// Weight gradient with its operands swapped.
    TheOtherOperand,
    /// Output gradient quantized with the scales of the forward input.
    ScaleOfTheForwardPass,
    /// Weight gradient added to an equal one of the previous step.
    LeftOver,
}

/// Linear layers of which one has a bug.
struct Mutant {
    correct: Quantized,
    layer: usize,
    bug: Bug,
    inputs: RefCell<HashMap<usize, Rows>>,
}

impl ExactLayers for Mutant {
    fn output(&self, layer: usize, input: &Rows, weight: &Rows) -> Rows {
        self.inputs.borrow_mut().insert(layer, input.clone());
        self.correct.output(layer, input, weight)
    }

    fn grad_input(&self, layer: usize, gradient: &Rows, weight: &Rows) -> Rows {
        let correct = || self.correct.grad_input(layer, gradient, weight);
        match self.bug {
            _ if layer != self.layer => correct(),
            Bug::NoTransposeOfTheWeight => self.correct.grad_input(layer, gradient, &weight.transposed()),
            Bug::ScaleOfTheForwardPass => {
                let training = self.correct.training;
                let (forward, back) = (training.output.expect("in float8"), training.grad_input.expect("in float8"));
                let codes = |of: &Rows, format| {
                    let rounded: Vec<f32> =
                        of.values.iter().map(|&value| self.correct.dtype.round(value as f32)).collect();
                    quantize(&rounded, of.cols, format)
                };
                let mut wrong = codes(gradient, back.left.expect("in float8"));
                wrong.scales = codes(&self.inputs.borrow()[&layer], forward.left.expect("in float8")).scales;
                let wrong = wrong.dequantize().into_iter().map(f64::from).collect();
                let weight = codes(&weight.transposed(), back.right.expect("in float8"))
                    .dequantize()
                    .into_iter()
                    .map(f64::from)
                    .collect();
                Rows { cols: gradient.cols, values: wrong }.times(&Rows { cols: gradient.cols, values: weight })
            }
            _ => correct(),
        }
    }

    fn grad_weight(&self, layer: usize, gradient: &Rows, input: &Rows) -> Rows {
        let correct = || self.correct.grad_weight(layer, gradient, input);
        match self.bug {
            _ if layer != self.layer => correct(),
            Bug::NoTransposeOfTheGradient => correct().transposed(),
            Bug::TheOtherOperand => self.correct.grad_weight(layer, input, gradient),
            Bug::LeftOver => correct().map(|value| 2.0 * value),
            _ => correct(),
        }
    }
}

/// Outputs of a pass with the given layers, rounded to the stored dtype.
fn answered<A: Architecture>(
    pass: &TrainedModel<A>,
    layers: &dyn ExactLayers,
    spec: &Spec,
    inputs: &[Matrix],
) -> Vec<Output> {
    let slots = pass.outputs(spec);
    let all_indices = |side: u64| (0..side as usize).collect();
    let sample = |slot: &crate::Slot| Sample { rows: all_indices(slot.rows), cols: all_indices(slot.cols) };
    let samples: Vec<(usize, Sample)> = slots.iter().map(sample).enumerate().collect();
    let computed = pass.computed_by(layers, spec, inputs, &samples);
    let output = |(slot, values): (&crate::Slot, Vec<f64>)| {
        let stored = |value: f64| slot.element.decode(slot.element.encode(value as f32));
        let (rows, cols) = (slot.rows as usize, slot.cols as usize);
        Output { rows, cols, values: values.into_iter().map(stored).collect() }
    };
    slots.iter().zip(computed).map(output).collect()
}

/// Checks that the gate rejects each bug in each layer under each recipe, and accepts the correct outputs.
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
            let correct = answered(pass, &quantized(), &spec, &inputs);
            judged(&correct).unwrap_or_else(|why| panic!("{} {recipe} {dtype}: correct outputs: {why}", pass.name()));
            let mut accepted = Vec::new();
            for (layer, [n, k]) in model.layers(&spec).into_iter().enumerate() {
                let square = n == k;
                for (bug, applies) in [
                    (Bug::NoTransposeOfTheWeight, square),
                    (Bug::NoTransposeOfTheGradient, square),
                    (Bug::TheOtherOperand, square),
                    (Bug::ScaleOfTheForwardPass, square && training.output.is_some() && training.grad_input.is_some()),
                    (Bug::LeftOver, true),
                ] {
                    let mutant = Mutant { correct: quantized(), layer, bug, inputs: RefCell::default() };
                    let passes = applies && judged(&answered(pass, &mutant, &spec, &inputs)).is_ok();
                    accepted.extend(passes.then_some((layer, bug)));
                }
            }
            // Swapped gradients.
            let gradients: Vec<usize> = (0..correct.len())
                .filter(|&at| matches!(pass.results(&spec)[at], Made::GradInput | Made::Gradient(_)))
                .collect();
            for (&a, &b) in gradients.iter().flat_map(|a| gradients.iter().map(move |b| (a, b))).filter(|(a, b)| a < b)
            {
                let mut swapped = correct.clone();
                swapped.swap(a, b);
                let same = (correct[a].rows, correct[a].cols) == (correct[b].rows, correct[b].cols);
                assert!(!same || judged(&swapped).is_err(), "{} {recipe} {dtype}: {a} for {b}", pass.name());
            }
            assert!(accepted.is_empty(), "{} {recipe} {dtype}: accepted: {accepted:?}", pass.name());
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

/// Three times the operations of the forward pass, which are two per multiply-add.
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

/// Rows that the reference of a large model omits contribute less than 1e-6 to the gradients.
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
    // Sampling every row of the output forces the gradients of every row.
    all[0].1.rows = (0..256).collect();
    let (some, all) = (both.references(&spec, &inputs, &some), both.references(&spec, &inputs, &all));
    for (output, (some, all)) in some.iter().zip(&all).enumerate().skip(1) {
        let error: f64 = some.iter().zip(all).map(|(some, all)| (some - all).powi(2)).sum();
        let power: f64 = all.iter().map(|value| value * value).sum();
        assert!((error / power).sqrt() < 1e-6, "{output}: {:e}", (error / power).sqrt());
    }
}
