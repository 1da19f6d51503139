//! Checks of the references against finite differences, and of the gate against typical bugs of hand-written backward
//! passes.

use super::architecture::{Architecture, ModelShape, ReferencePass};
use super::matrix_f64::{MatrixF64, dot};
use super::reference_layers::{QuantizedLayers, ReferenceLayers};
use super::{ModelOutput, Pass, TrainedLnLinear, TrainedModel, TrainedSwigluMlp, TrainedTransformerBlock, passes};
use crate::{
    Activation, Cost, ExactReference, Matrix, Operand, Operator, OperatorProblem, Output, OutputSample, Signature, Spec,
};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element, ElementCodec, Float8Training, FloatType, Recipe};
use calorimeter_shapes::Axes;
use std::cell::RefCell;
use std::collections::HashMap;

fn spec([m, k, n]: [u64; 3], dtype: Dtype, recipe: &str) -> Spec {
    let training = recipe.parse::<Recipe>().unwrap().training().unwrap();
    Spec { axes: Axes::from([("m", m), ("k", k), ("n", n)]), element: Element::Float(dtype), output: None, training }
}

/// Compares gradients with finite differences at several elements of the input and of each parameter.
fn check_finite_differences<A: Architecture>(model: A, size: [u64; 3]) {
    const STEP: f64 = 1e-5;
    let spec = spec(size, Dtype::F32, "baseline");
    let layers = QuantizedLayers { training: Float8Training::unquantized(), dtype: Dtype::F32 };
    let rows = |matrix: &Matrix| MatrixF64 {
        cols: matrix.cols,
        values: matrix.values.iter().map(|&value| f64::from(value)).collect(),
    };
    let ModelShape { rows: count, output, .. } = model.shape(&spec);
    let [forward, ..] = passes(model);
    let inputs: Vec<MatrixF64> =
        forward.inputs(&spec).iter().zip(3..).map(|(input, seed)| rows(&input.matrix(seed))).collect();
    let gradient = rows(&Operand::normal(count, output, spec.element).matrix(1));
    let computed = |inputs: &[MatrixF64], gradient| model.reference(&layers, &inputs[0], &inputs[1..], gradient);
    let loss = |inputs: &[MatrixF64]| dot(&computed(inputs, None).output.values, &gradient.values);
    let ReferencePass { gradients: Some((input, parameters)), .. } = computed(&inputs, Some(&gradient)) else {
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
enum LayerBug {
    /// Input gradient with the transposed weights.
    WeightNotTransposed,
    /// Transposed weight gradient.
    GradientNotTransposed,
    /// Weight gradient with its operands swapped.
    SwappedOperands,
    /// Output gradient quantized with the scales of the forward input.
    ForwardScales,
    /// Weight gradient added to an equal one of the previous step.
    StaleGradient,
}

/// Linear layers of which one has a bug.
struct MutantLayers {
    correct: QuantizedLayers,
    layer: usize,
    bug: LayerBug,
    inputs: RefCell<HashMap<usize, MatrixF64>>,
}

impl ReferenceLayers for MutantLayers {
    fn output(&self, layer: usize, input: &MatrixF64, weight: &MatrixF64) -> MatrixF64 {
        self.inputs.borrow_mut().insert(layer, input.clone());
        self.correct.output(layer, input, weight)
    }

    fn grad_input(&self, layer: usize, gradient: &MatrixF64, weight: &MatrixF64) -> MatrixF64 {
        let correct = || self.correct.grad_input(layer, gradient, weight);
        match self.bug {
            _ if layer != self.layer => correct(),
            LayerBug::WeightNotTransposed => self.correct.grad_input(layer, gradient, &weight.transpose()),
            LayerBug::ForwardScales => {
                let training = self.correct.training;
                let (forward, back) = (training.output.expect("in float8"), training.grad_input.expect("in float8"));
                let codes = |of: &MatrixF64, format| {
                    let rounded: Vec<f32> =
                        of.values.iter().map(|&value| self.correct.dtype.round(value as f32)).collect();
                    quantize(&rounded, of.cols, format)
                };
                let mut wrong = codes(gradient, back.left.expect("in float8"));
                wrong.scales = codes(&self.inputs.borrow()[&layer], forward.left.expect("in float8")).scales;
                let wrong = wrong.dequantize().into_iter().map(f64::from).collect();
                let weight = codes(&weight.transpose(), back.right.expect("in float8"))
                    .dequantize()
                    .into_iter()
                    .map(f64::from)
                    .collect();
                MatrixF64 { cols: gradient.cols, values: wrong }
                    .matmul_transposed(&MatrixF64 { cols: gradient.cols, values: weight })
            }
            _ => correct(),
        }
    }

    fn grad_weight(&self, layer: usize, gradient: &MatrixF64, input: &MatrixF64) -> MatrixF64 {
        let correct = || self.correct.grad_weight(layer, gradient, input);
        match self.bug {
            _ if layer != self.layer => correct(),
            LayerBug::GradientNotTransposed => correct().transpose(),
            LayerBug::SwappedOperands => self.correct.grad_weight(layer, input, gradient),
            LayerBug::StaleGradient => correct().map(|value| 2.0 * value),
            _ => correct(),
        }
    }
}

/// Outputs of a pass with the given layers, rounded to the stored dtype.
fn computed_outputs<A: Architecture>(
    pass: &TrainedModel<A>,
    layers: &dyn ReferenceLayers,
    spec: &Spec,
    inputs: &[Matrix],
) -> Vec<Output> {
    let slots = pass.outputs(spec);
    let all_indices = |side: u64| (0..side as usize).collect();
    let sample = |slot: &crate::OutputSlot| OutputSample { rows: all_indices(slot.rows), cols: all_indices(slot.cols) };
    let samples: Vec<(usize, OutputSample)> = slots.iter().map(sample).enumerate().collect();
    let computed = pass.compute_with(layers, spec, inputs, &samples);
    let output = |(slot, values): (&crate::OutputSlot, Vec<f64>)| {
        let stored = |value: f64| slot.element.decode(slot.element.encode(value as f32));
        let (rows, cols) = (slot.rows as usize, slot.cols as usize);
        Output { rows, cols, values: values.into_iter().map(stored).collect() }
    };
    slots.iter().zip(computed).map(output).collect()
}

/// Checks that the gate rejects each bug in each layer under each recipe, and accepts the correct outputs.
fn check_bugs_are_rejected<A: Architecture>(model: A, size: [u64; 3]) {
    let float8 = ["tensorwise", "rowwise", "rowwise_with_gw_hp", "mxfp8"].map(|recipe| (Dtype::Bf16, recipe));
    for (dtype, recipe) in [Dtype::F32, Dtype::Bf16].map(|dtype| (dtype, "baseline")).into_iter().chain(float8) {
        let spec = spec(size, dtype, recipe);
        let training = spec.training.map_or(Float8Training::unquantized(), |recipe| recipe.training());
        for pass in
            passes(model).iter().filter(|pass| [Pass::Backward, Pass::AdamwStep, Pass::SgdStep].contains(&pass.pass))
        {
            let problem =
                OperatorProblem { operator: pass.name().parse::<Operator>().unwrap(), spec: spec.clone(), seed: 7 };
            let inputs = problem.gate_inputs();
            let references = problem.references(&inputs);
            let quantized = || QuantizedLayers { training, dtype };
            let judged = |outputs: &[Output]| problem.judge(outputs, &references, false);
            let correct = computed_outputs(pass, &quantized(), &spec, &inputs);
            judged(&correct).unwrap_or_else(|why| panic!("{} {recipe} {dtype}: correct outputs: {why}", pass.name()));
            let mut accepted = Vec::new();
            for (layer, [n, k]) in model.layer_shapes(&spec).into_iter().enumerate() {
                let square = n == k;
                for (bug, applies) in [
                    (LayerBug::WeightNotTransposed, square),
                    (LayerBug::GradientNotTransposed, square),
                    (LayerBug::SwappedOperands, square),
                    (LayerBug::ForwardScales, square && training.output.is_some() && training.grad_input.is_some()),
                    (LayerBug::StaleGradient, true),
                ] {
                    let mutant = MutantLayers { correct: quantized(), layer, bug, inputs: RefCell::default() };
                    let passes = applies && judged(&computed_outputs(pass, &mutant, &spec, &inputs)).is_ok();
                    accepted.extend(passes.then_some((layer, bug)));
                }
            }
            // Swapped gradients.
            let gradients: Vec<usize> = (0..correct.len())
                .filter(|&at| matches!(pass.pass_outputs(&spec)[at], ModelOutput::GradInput | ModelOutput::Gradient(_)))
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
fn ln_linear_gradients_match_finite_differences() {
    for activation in Activation::ALL {
        check_finite_differences(TrainedLnLinear(activation), [5, 12, 7]);
    }
}

#[test]
fn ln_linear_backward_bugs_are_rejected() {
    for activation in Activation::ALL {
        check_bugs_are_rejected(TrainedLnLinear(activation), [64, 64, 64]);
    }
}

/// Three times the operations of the forward pass, which are two per multiply-add.
#[test]
fn forward_backward_counts_six_mkn() {
    let [_, backward, both, ..] = passes(TrainedLnLinear(Activation::Relu));
    let spec = spec([8, 16, 32], Dtype::F32, "baseline");
    assert_eq!((backward.flops(&spec), both.flops(&spec)), (4 * 8 * 16 * 32, 6 * 8 * 16 * 32));
}

#[test]
fn swiglu_mlp_gradients_match_finite_differences() {
    check_finite_differences(TrainedSwigluMlp, [5, 12, 7]);
}

#[test]
fn swiglu_mlp_backward_bugs_are_rejected() {
    check_bugs_are_rejected(TrainedSwigluMlp, [64, 64, 64]);
}

#[test]
fn transformer_block_gradients_match_finite_differences() {
    check_finite_differences(TrainedTransformerBlock, [2, 16, 1]);
}

#[test]
fn transformer_block_backward_bugs_are_rejected() {
    check_bugs_are_rejected(TrainedTransformerBlock, [4, 64, 1]);
}

/// Rows that the reference of a large model omits contribute less than 1e-6 to the gradients.
#[test]
fn active_rows_determine_weight_gradients() {
    let spec = spec([16, 64, 1], Dtype::F32, "baseline");
    let [_, _, both, ..] = passes(TrainedTransformerBlock).map(|pass| TrainedModel { budget: 1, ..pass });
    let (slots, samples) =
        (both.outputs(&spec), |output: usize| both.sample(&spec, output, &both.outputs(&spec)[output]));
    let inputs: Vec<Matrix> = both.inputs(&spec).iter().zip(4..).map(|(given, seed)| given.gate_matrix(seed)).collect();
    assert_eq!((slots[0].rows, samples(0).rows.len()), (256, 64));
    let some: Vec<(usize, OutputSample)> = (0..slots.len()).map(|output| (output, samples(output))).collect();
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
