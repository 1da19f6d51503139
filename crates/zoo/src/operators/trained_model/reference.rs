//! Double-precision reference and tolerance of the training passes of models.

use super::architecture::{Architecture, ReferencePass, RoundingCounts};
use super::matrix_f64::MatrixF64;
use super::reference_layers::{QuantizedLayers, ReferenceLayers};
use super::{ModelInput, ModelOutput, TrainedModel};
use crate::gate::Tolerance;
use crate::operators::trained_linear::{TrainedLinear as Pass, optimizers};
use crate::outlier_rows::{self, GROUP_ROWS};
use crate::{ExactReference, Matrix, OutputSample, OutputSlot, Signature, Spec};
use calorimeter_recipes::format::Format;
use calorimeter_recipes::training::OperandFormats;
use calorimeter_recipes::{Dtype, Element, Float8Training, TrainingRecipe};
use rayon::prelude::*;

impl<A: Architecture> ExactReference for TrainedModel<A> {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        if self.pass.is_optimizer() { 4 } else { self.active_row_count(spec) }
    }

    fn sample(&self, spec: &Spec, output: usize, slot: &OutputSlot) -> OutputSample {
        match self.pass_outputs(spec)[output] {
            // Complete rows: a computed row costs as much as some of its columns.
            ModelOutput::Output | ModelOutput::GradInput => {
                OutputSample { rows: self.active_rows(spec), cols: (0..slot.cols as usize).collect() }
            }
            _ => OutputSample::new(slot.rows, slot.cols, self.depth(spec, output)),
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &OutputSample) -> Vec<f64> {
        self.references(spec, inputs, &[(output, sample.clone())]).remove(0)
    }

    fn references(&self, spec: &Spec, inputs: &[Matrix], samples: &[(usize, OutputSample)]) -> Vec<Vec<f64>> {
        let training = spec.training.map_or(Float8Training::unquantized(), |recipe| recipe.training());
        self.compute_with(&QuantizedLayers { training, dtype: spec.dtype() }, spec, inputs, samples)
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        let (pass_output, slot) = (self.pass_outputs(spec)[output], self.outputs(spec)[output]);
        let stored = if slot.element == Element::Float(Dtype::F32) { Dtype::F32 } else { spec.dtype() };
        // Optimizers compute in f32 and round once to the stored dtype.
        let updated = Tolerance::new(stored, 6, 4);
        match pass_output {
            ModelOutput::Output | ModelOutput::GradInput | ModelOutput::Gradient(_) => {
                self.matmul_tolerance(pass_output, spec)
            }
            _ if self.pass.is_optimizer() => updated,
            ModelOutput::Parameter(index) | ModelOutput::Moment(_, index) => {
                let gradient = self.matmul_tolerance(ModelOutput::Gradient(index), spec);
                let ErrorShares { norm, element } = self.error_shares(pass_output, &slot);
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
struct ErrorShares {
    /// Share of the relative L2 error.
    norm: f64,
    /// Share of the error of a single element, which may be so large that it dominates the output.
    element: f64,
}

impl<A: Architecture> TrainedModel<A> {
    fn matmul_tolerance(&self, output: ModelOutput, spec: &Spec) -> Tolerance {
        let layers = self.model.layer_shapes(spec);
        let max_side = |side: usize| layers.iter().map(|sides| sides[side]).max().unwrap_or(1);
        let (is_forward, [max_n, max_k]) = (output == ModelOutput::Output, [0, 1].map(max_side));
        let RoundingCounts { forward, backward: back } = self.model.roundings();
        let (roundings, depth) = match output {
            ModelOutput::Output => (forward, max_k),
            ModelOutput::GradInput => (forward + back, max_k + max_n),
            _ => (forward + back, max_k + self.active_row_count(spec)),
        };
        // Float8: two more roundings per matmul, of the scales of both operands.
        let products = layers.len() as u32 * if is_forward { 1 } else { 2 };
        let training = spec.training.map(|recipe| recipe.training());
        let roundings = roundings + if training.is_some() { 2 * products } else { 0 };
        // A weight gradient multiplies a computed gradient by a computed activation; only weights and inputs are given
        // exactly.
        let both_computed = matches!(output, ModelOutput::Gradient(_));
        let mut tolerance = Tolerance { both_computed, ..Tolerance::new(spec.dtype(), roundings, depth) };
        if spec.training.is_some_and(TrainingRecipe::has_fast_accumulation) {
            tolerance = tolerance.with_fast_accumulation(layers.len() as u32, max_k);
        }
        let error = spec.dtype().unit_roundoff() * f64::from(roundings).sqrt();
        let narrow = layers.iter().flatten().copied().min().unwrap_or(1).min(self.model.shape(spec).rows);
        let tolerance = match training.and_then(|training| coarsest(training, is_forward)) {
            Some(format) => {
                let requantized =
                    tolerance.with_requantized(error, products, narrow, format, self.covers_all_rows(spec));
                // The operands were computed: a row may depend on a single element that rounds to a different quantized
                // value.
                let slope = tolerance.slope.map(|slope| slope + requantized.rel_l2 - tolerance.rel_l2);
                Tolerance { slope, ..requantized }
            }
            None => tolerance,
        };
        if is_forward || !self.model.has_kinks() { tolerance } else { tolerance.with_kinks(error, narrow) }
    }

    /// Weight gradients are about as large as moments, and weights about 1 / √(row length). Gradients of gains are sums
    /// over all rows and much larger.
    fn error_shares(&self, output: ModelOutput, slot: &OutputSlot) -> ErrorShares {
        // Largest gradient relative to a typical one.
        const MAX_GRADIENT: f64 = 8.0;
        let ([first, second], weight) = (optimizers::BETAS, 1.0 / (slot.cols as f64).sqrt());
        let step = match self.pass {
            Pass::AdamwStep => {
                (1.0 - first) * optimizers::bias_correction(first) / optimizers::bias_correction(second).sqrt()
            }
            _ => 1.0,
        };
        match output {
            ModelOutput::Moment(0, _) if slot.rows == 1 => ErrorShares { norm: 1.0, element: 1.0 },
            ModelOutput::Moment(0, _) => ErrorShares { norm: 1.0 - first, element: 1.0 },
            // Squaring doubles the relative error.
            ModelOutput::Moment(..) if slot.rows == 1 => ErrorShares { norm: 2.0, element: 2.0 },
            ModelOutput::Moment(..) => {
                ErrorShares { norm: 2.0 * (1.0 - second) * MAX_GRADIENT * MAX_GRADIENT, element: 2.0 }
            }
            _ => {
                let norm = optimizers::LEARNING_RATE * step / weight;
                ErrorShares { norm, element: MAX_GRADIENT * norm }
            }
        }
    }
}

/// Format with the largest step among the matmul operands of the forward pass, and of the backward pass unless
/// `is_forward`.
fn coarsest(training: Float8Training, is_forward: bool) -> Option<Format> {
    let back = [training.grad_input, training.grad_weight].map(|operands| operands.filter(|_| !is_forward));
    let operands = back.into_iter().chain([training.output]).flatten();
    let formats = operands.flat_map(|OperandFormats { left, right }| [left, right]).flatten();
    formats.max_by(|a, b| {
        let whole = |format: &Format| format.needs_tensor_amax();
        a.typical_step().total_cmp(&b.typical_step()).then(whole(a).cmp(&whole(b)))
    })
}

impl<A: Architecture> TrainedModel<A> {
    /// Sampled values of outputs, computed with the given linear layers.
    pub(super) fn compute_with(
        &self,
        layers: &dyn ReferenceLayers,
        spec: &Spec,
        inputs: &[Matrix],
        samples: &[(usize, OutputSample)],
    ) -> Vec<Vec<f64>> {
        let (pass_inputs, results) = (self.pass_inputs(spec), self.pass_outputs(spec));
        let find = |input: ModelInput| pass_inputs.iter().position(|other| *other == input).map(|index| &inputs[index]);
        let computed = find(ModelInput::Input).map(|input| {
            let by_rows = samples
                .iter()
                .filter(|(output, _)| matches!(results[*output], ModelOutput::Output | ModelOutput::GradInput));
            let mut groups: Vec<usize> =
                by_rows.flat_map(|(_, sample)| &sample.rows).map(|row| row / GROUP_ROWS).collect();
            groups.extend(find(ModelInput::GradOutput).into_iter().flat_map(outlier_rows::find_groups));
            groups.sort_unstable();
            groups.dedup();
            let rows = outlier_rows::rows_in_groups(&groups, input.rows);
            let parameters: Vec<MatrixF64> =
                (0..).map_while(|index| find(ModelInput::Parameter(index))).map(to_f64).collect();
            let gradient = find(ModelInput::GradOutput).map(|gradient| MatrixF64::from_rows(gradient, &rows));
            let computed =
                self.model.reference(layers, &MatrixF64::from_rows(input, &rows), &parameters, gradient.as_ref());
            (rows, computed)
        });
        let sampled = |(output, sample): &(usize, OutputSample)| {
            let needed = "the pass has the inputs of its outputs";
            let in_rows = |computed: &MatrixF64, rows: &[usize]| {
                let row = |row: &usize| rows.binary_search(row).expect("sampled rows are computed");
                let rows: Vec<usize> = sample.rows.iter().map(row).collect();
                sampled_values(computed, &OutputSample { rows, cols: sample.cols.clone() })
            };
            let gradient_of = |index: usize| match &computed {
                Some((_, ReferencePass { gradients: Some((_, gradients)), .. })) => {
                    sampled_values(&gradients[index], sample)
                }
                _ => sampled_matrix_values(find(ModelInput::Gradient(index)).expect(needed), sample),
            };
            let (rows, pass) = match (results[*output], &computed) {
                (ModelOutput::Output | ModelOutput::GradInput, computed) => computed.as_ref().expect(needed),
                (ModelOutput::Gradient(index), _) => return gradient_of(index),
                (ModelOutput::Parameter(index) | ModelOutput::Moment(_, index), _) => {
                    let sampled_input = |input| find(input).map(|matrix| sampled_matrix_values(matrix, sample));
                    let parameter = sampled_input(ModelInput::Parameter(index)).expect(needed);
                    let moments =
                        sampled_input(ModelInput::Moment(0, index)).zip(sampled_input(ModelInput::Moment(1, index)));
                    let updated = |(at, gradient): (usize, f64)| match &moments {
                        None => optimizers::sgd_f64(parameter[at], gradient),
                        Some((mean, square)) => {
                            let (parameter, moments) =
                                optimizers::adamw_f64(parameter[at], gradient, [mean[at], square[at]]);
                            if let ModelOutput::Moment(moment, _) = results[*output] {
                                moments[moment]
                            } else {
                                parameter
                            }
                        }
                    };
                    return gradient_of(index).into_iter().enumerate().map(updated).collect();
                }
            };
            match &pass.gradients {
                Some((input, _)) if results[*output] == ModelOutput::GradInput => in_rows(input, rows),
                _ => in_rows(&pass.output, rows),
            }
        };
        samples.iter().map(sampled).collect()
    }
}

fn to_f64(matrix: &Matrix) -> MatrixF64 {
    MatrixF64 { cols: matrix.cols, values: matrix.values.par_iter().map(|&value| f64::from(value)).collect() }
}

fn sampled_values(rows: &MatrixF64, sample: &OutputSample) -> Vec<f64> {
    sample.map_rows(|row| sample.cols.iter().map(|&col| rows.row(row)[col]).collect())
}

fn sampled_matrix_values(matrix: &Matrix, sample: &OutputSample) -> Vec<f64> {
    sample.map_elements(|row, col| f64::from(matrix.row(row)[col]))
}
