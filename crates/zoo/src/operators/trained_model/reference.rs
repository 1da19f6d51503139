//! Double-precision reference and tolerance of the training passes of models.

use super::architecture::{Architecture, Exactly, Roundings};
use super::exact_layers::{ExactLayers, Quantized};
use super::rows::Rows;
use super::{Given, Made, TrainedModel};
use crate::gate::Tolerance;
use crate::loud_rows::{self, GROUP};
use crate::operators::trained_linear::{TrainedLinear as Pass, optimizers};
use crate::{Exact, Matrix, Sample, Signature, Slot, Spec};
use calorimeter_recipes::format::Format;
use calorimeter_recipes::training::Operands;
use calorimeter_recipes::{Dtype, Element, Float8Training, TrainingRecipe};
use rayon::prelude::*;

impl<A: Architecture> Exact for TrainedModel<A> {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        if self.pass.is_optimizer() { 4 } else { self.loud_count(spec) }
    }

    fn sample(&self, spec: &Spec, output: usize, slot: &Slot) -> Sample {
        match self.results(spec)[output] {
            // Complete rows: a computed row costs as much as some of its columns.
            Made::Output | Made::GradInput => {
                Sample { rows: self.loud_rows(spec), cols: (0..slot.cols as usize).collect() }
            }
            _ => Sample::of(slot.rows, slot.cols, self.depth(spec, output)),
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64> {
        self.references(spec, inputs, &[(output, sample.clone())]).remove(0)
    }

    fn references(&self, spec: &Spec, inputs: &[Matrix], samples: &[(usize, Sample)]) -> Vec<Vec<f64>> {
        let training = spec.training.map_or(Float8Training::none(), |recipe| recipe.training());
        self.computed_by(&Quantized { training, dtype: spec.dtype() }, spec, inputs, samples)
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        let (pass_output, slot) = (self.results(spec)[output], self.outputs(spec)[output]);
        let stored = if slot.element == Element::Float(Dtype::F32) { Dtype::F32 } else { spec.dtype() };
        // Optimizers compute in f32 and round once to the stored dtype.
        let updated = Tolerance::new(stored, 6, 4);
        match pass_output {
            Made::Output | Made::GradInput | Made::Gradient(_) => self.of_products(pass_output, spec),
            _ if self.pass.is_optimizer() => updated,
            Made::Parameter(index) | Made::Moment(_, index) => {
                let gradient = self.of_products(Made::Gradient(index), spec);
                let Shares { norm, element } = self.shares(pass_output, &slot);
                Tolerance {
                    rel_l2: updated.rel_l2 + norm * gradient.rel_l2,
                    element: updated.element + element * gradient.element,
                    slope: updated.slope.zip(gradient.slope).map(|(own, gradient)| own + norm * gradient),
                    ..gradient
                }
            }
        }
    }
}

/// Share of a gradient's error that remains in an output of the optimizer.
struct Shares {
    /// Share of the relative L2 error.
    norm: f64,
    /// Share of the error of a single element, which may be so large that it dominates the output.
    element: f64,
}

impl<A: Architecture> TrainedModel<A> {
    fn of_products(&self, output: Made, spec: &Spec) -> Tolerance {
        let layers = self.model.layers(spec);
        let max_side = |side: usize| layers.iter().map(|sides| sides[side]).max().unwrap_or(1);
        let (is_forward, [max_n, max_k]) = (output == Made::Output, [0, 1].map(max_side));
        let Roundings { forward, back } = self.model.roundings();
        let (roundings, depth) = match output {
            Made::Output => (forward, max_k),
            Made::GradInput => (forward + back, max_k + max_n),
            _ => (forward + back, max_k + self.loud_count(spec)),
        };
        // Float8: two more roundings per matmul, of the scales of both operands.
        let products = layers.len() as u32 * if is_forward { 1 } else { 2 };
        let training = spec.training.map(|recipe| recipe.training());
        let roundings = roundings + if training.is_some() { 2 * products } else { 0 };
        // A weight gradient multiplies a computed gradient by a computed activation; only weights and inputs are given
        // exactly.
        let both_computed = matches!(output, Made::Gradient(_));
        let mut tolerance = Tolerance { both_computed, ..Tolerance::new(spec.dtype(), roundings, depth) };
        if spec.training.is_some_and(TrainingRecipe::is_fast) {
            tolerance = tolerance.with_fast_sums(layers.len() as u32, max_k);
        }
        let error = spec.dtype().unit_roundoff() * f64::from(roundings).sqrt();
        let narrow = layers.iter().flatten().copied().min().unwrap_or(1).min(self.model.sides(spec).rows);
        let tolerance = match training.and_then(|training| coarsest(training, is_forward)) {
            Some(format) => {
                let requantized = tolerance.with_requantized(error, products, narrow, format, self.is_whole(spec));
                // The operands were computed: a row may depend on a single element that rounds to a different quantized
                // value.
                let slope = tolerance.slope.map(|slope| slope + requantized.rel_l2 - tolerance.rel_l2);
                Tolerance { slope, ..requantized }
            }
            None => tolerance,
        };
        if is_forward || !self.model.is_kinked() { tolerance } else { tolerance.with_kinks(error, narrow) }
    }

    /// Weight gradients are about as large as moments, and weights about 1 / √(row length). Gradients of gains are sums
    /// over all rows and much larger.
    fn shares(&self, output: Made, slot: &Slot) -> Shares {
        // Largest gradient relative to a typical one.
        const LOUDEST: f64 = 8.0;
        let ([first, second], weight) = (optimizers::BETAS, 1.0 / (slot.cols as f64).sqrt());
        let step = match self.pass {
            Pass::AdamwStep => (1.0 - first) * optimizers::correction(first) / optimizers::correction(second).sqrt(),
            _ => 1.0,
        };
        match output {
            Made::Moment(0, _) if slot.rows == 1 => Shares { norm: 1.0, element: 1.0 },
            Made::Moment(0, _) => Shares { norm: 1.0 - first, element: 1.0 },
            // Squaring doubles the relative error.
            Made::Moment(..) if slot.rows == 1 => Shares { norm: 2.0, element: 2.0 },
            Made::Moment(..) => Shares { norm: 2.0 * (1.0 - second) * LOUDEST * LOUDEST, element: 2.0 },
            _ => {
                let norm = optimizers::LEARNING_RATE * step / weight;
                Shares { norm, element: LOUDEST * norm }
            }
        }
    }
}

/// Format with the largest step among the matmul operands of the forward pass, and of the backward pass unless
/// `is_forward`.
fn coarsest(training: Float8Training, is_forward: bool) -> Option<Format> {
    let back = [training.grad_input, training.grad_weight].map(|operands| operands.filter(|_| !is_forward));
    let operands = back.into_iter().chain([training.output]).flatten();
    let formats = operands.flat_map(|Operands { left, right }| [left, right]).flatten();
    formats.max_by(|a, b| {
        let whole = |format: &Format| format.looks_at_the_whole_tensor();
        a.typical_step().total_cmp(&b.typical_step()).then(whole(a).cmp(&whole(b)))
    })
}

impl<A: Architecture> TrainedModel<A> {
    /// Sampled values of outputs, computed with the given linear layers.
    pub(super) fn computed_by(
        &self,
        layers: &dyn ExactLayers,
        spec: &Spec,
        inputs: &[Matrix],
        samples: &[(usize, Sample)],
    ) -> Vec<Vec<f64>> {
        let (pass_inputs, results) = (self.given(spec), self.results(spec));
        let find = |input: Given| pass_inputs.iter().position(|other| *other == input).map(|index| &inputs[index]);
        let computed = find(Given::Input).map(|input| {
            let by_rows =
                samples.iter().filter(|(output, _)| matches!(results[*output], Made::Output | Made::GradInput));
            let mut groups: Vec<usize> = by_rows.flat_map(|(_, sample)| &sample.rows).map(|row| row / GROUP).collect();
            groups.extend(find(Given::GradOutput).into_iter().flat_map(loud_rows::groups_in));
            groups.sort_unstable();
            groups.dedup();
            let rows = loud_rows::rows_of(&groups, input.rows);
            let parameters: Vec<Rows> = (0..).map_while(|index| find(Given::Parameter(index))).map(whole).collect();
            let gradient = find(Given::GradOutput).map(|gradient| Rows::some_of(gradient, &rows));
            let computed = self.model.exact(layers, &Rows::some_of(input, &rows), &parameters, gradient.as_ref());
            (rows, computed)
        });
        let sampled = |(output, sample): &(usize, Sample)| {
            let needed = "the pass has the inputs of its outputs";
            let in_rows = |computed: &Rows, rows: &[usize]| {
                let row = |row: &usize| rows.binary_search(row).expect("sampled rows are computed");
                let rows: Vec<usize> = sample.rows.iter().map(row).collect();
                picked(computed, &Sample { rows, cols: sample.cols.clone() })
            };
            let gradient_of = |index: usize| match &computed {
                Some((_, Exactly { gradients: Some((_, gradients)), .. })) => picked(&gradients[index], sample),
                _ => picked_of(find(Given::Gradient(index)).expect(needed), sample),
            };
            let (rows, pass) = match (results[*output], &computed) {
                (Made::Output | Made::GradInput, computed) => computed.as_ref().expect(needed),
                (Made::Gradient(index), _) => return gradient_of(index),
                (Made::Parameter(index) | Made::Moment(_, index), _) => {
                    let sampled_input = |input| find(input).map(|matrix| picked_of(matrix, sample));
                    let parameter = sampled_input(Given::Parameter(index)).expect(needed);
                    let moments = sampled_input(Given::Moment(0, index)).zip(sampled_input(Given::Moment(1, index)));
                    let updated = |(at, gradient): (usize, f64)| match &moments {
                        None => optimizers::exact_sgd(parameter[at], gradient),
                        Some((mean, square)) => {
                            let (parameter, moments) =
                                optimizers::exact_adamw(parameter[at], gradient, [mean[at], square[at]]);
                            if let Made::Moment(moment, _) = results[*output] { moments[moment] } else { parameter }
                        }
                    };
                    return gradient_of(index).into_iter().enumerate().map(updated).collect();
                }
            };
            match &pass.gradients {
                Some((input, _)) if results[*output] == Made::GradInput => in_rows(input, rows),
                _ => in_rows(&pass.output, rows),
            }
        };
        samples.iter().map(sampled).collect()
    }
}

fn whole(matrix: &Matrix) -> Rows {
    Rows { cols: matrix.cols, values: matrix.values.par_iter().map(|&value| f64::from(value)).collect() }
}

fn picked(rows: &Rows, sample: &Sample) -> Vec<f64> {
    sample.by_rows(|row| sample.cols.iter().map(|&col| rows.row(row)[col]).collect())
}

fn picked_of(matrix: &Matrix, sample: &Sample) -> Vec<f64> {
    sample.by_elements(|row, col| f64::from(matrix.row(row)[col]))
}
