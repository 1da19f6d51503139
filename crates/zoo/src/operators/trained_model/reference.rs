//! What passes compute, in double precision, and how far a kernel may be from that.

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
            // Rows that are computed at all are computed whole.
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
        let (made, slot) = (self.results(spec)[output], self.outputs(spec)[output]);
        let stored = if slot.element == Element::Float(Dtype::F32) { Dtype::F32 } else { spec.dtype() };
        // An optimizer computes in f32, and rounds once to what it stores.
        let updated = Tolerance::new(stored, 6, 4);
        match made {
            Made::Output | Made::GradInput | Made::Gradient(_) => self.of_products(made, spec),
            _ if self.pass.is_optimizer() => updated,
            Made::Parameter(of) | Made::Moment(_, of) => {
                let gradient = self.of_products(Made::Gradient(of), spec);
                let Shares { norm, element } = self.shares(made, &slot);
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

/// How much of a gradient's error is left in what an optimizer makes of it.
struct Shares {
    /// Of that of all numbers.
    norm: f64,
    /// Of that of a single one, which may be as loud as it likes: then it is all that counts.
    element: f64,
}

impl<A: Architecture> TrainedModel<A> {
    fn of_products(&self, made: Made, spec: &Spec) -> Tolerance {
        let layers = self.model.layers(spec);
        let deepest = |side: usize| layers.iter().map(|sides| sides[side]).max().unwrap_or(1);
        let (there, [wide, deep]) = (made == Made::Output, [0, 1].map(deepest));
        let Roundings { forward, back } = self.model.roundings();
        let (roundings, depth) = match made {
            Made::Output => (forward, deep),
            Made::GradInput => (forward + back, deep + wide),
            _ => (forward + back, deep + self.loud_count(spec)),
        };
        // Of an operand in float8 both scales are rounded, too.
        let products = layers.len() as u32 * if there { 1 } else { 2 };
        let training = spec.training.map(|recipe| recipe.training());
        let roundings = roundings + if training.is_some() { 2 * products } else { 0 };
        // What comes back meets what went there: only weights and inputs are given.
        let both_computed = matches!(made, Made::Gradient(_));
        let mut tolerance = Tolerance { both_computed, ..Tolerance::new(spec.dtype(), roundings, depth) };
        if spec.training.is_some_and(TrainingRecipe::is_fast) {
            tolerance = tolerance.with_fast_sums(layers.len() as u32, deep);
        }
        let error = spec.dtype().unit_roundoff() * f64::from(roundings).sqrt();
        let narrow = layers.iter().flatten().copied().min().unwrap_or(1).min(self.model.sides(spec).rows);
        let tolerance = match training.and_then(|training| coarsest(training, there)) {
            Some(format) => {
                let wide = tolerance.with_requantized(error, products, narrow, format, self.is_whole(spec));
                // What is multiplied was computed: a row may hang on a single number that comes to lie on another code.
                let slope = tolerance.slope.map(|slope| slope + wide.rel_l2 - tolerance.rel_l2);
                Tolerance { slope, ..wide }
            }
            None => tolerance,
        };
        if there || !self.model.is_kinked() { tolerance } else { tolerance.with_kinks(error, narrow) }
    }

    /// Gradients of weights are about as large as moments, and weights as one over the root of their length. Gradients of gains
    /// are sums over all rows, and much larger.
    fn shares(&self, made: Made, slot: &Slot) -> Shares {
        // The loudest gradients, whose squares are as much louder.
        const LOUDEST: f64 = 8.0;
        let ([first, second], weight) = (optimizers::BETAS, 1.0 / (slot.cols as f64).sqrt());
        let step = match self.pass {
            Pass::AdamwStep => (1.0 - first) * optimizers::correction(first) / optimizers::correction(second).sqrt(),
            _ => 1.0,
        };
        match made {
            Made::Moment(0, _) if slot.rows == 1 => Shares { norm: 1.0, element: 1.0 },
            Made::Moment(0, _) => Shares { norm: 1.0 - first, element: 1.0 },
            // What is squared is off by twice as much.
            Made::Moment(..) if slot.rows == 1 => Shares { norm: 2.0, element: 2.0 },
            Made::Moment(..) => Shares { norm: 2.0 * (1.0 - second) * LOUDEST * LOUDEST, element: 2.0 },
            _ => {
                let norm = optimizers::LEARNING_RATE * step / weight;
                Shares { norm, element: LOUDEST * norm }
            }
        }
    }
}

/// The format with the widest steps of what is multiplied on the way to an output, or back as well.
fn coarsest(training: Float8Training, there: bool) -> Option<Format> {
    let back = [training.grad_input, training.grad_weight].map(|operands| operands.filter(|_| !there));
    let operands = back.into_iter().chain([training.output]).flatten();
    let formats = operands.flat_map(|Operands { left, right }| [left, right]).flatten();
    formats.max_by(|a, b| {
        let whole = |format: &Format| format.looks_at_the_whole_tensor();
        a.typical_step().total_cmp(&b.typical_step()).then(whole(a).cmp(&whole(b)))
    })
}

impl<A: Architecture> TrainedModel<A> {
    /// The sampled parts of outputs, with layers that multiply so.
    pub(super) fn computed_by(
        &self,
        layers: &dyn ExactLayers,
        spec: &Spec,
        inputs: &[Matrix],
        samples: &[(usize, Sample)],
    ) -> Vec<Vec<f64>> {
        let (given, results) = (self.given(spec), self.results(spec));
        let find = |wanted: Given| given.iter().position(|given| *given == wanted).map(|at| &inputs[at]);
        let computed = find(Given::Input).map(|input| {
            let by_rows =
                samples.iter().filter(|(output, _)| matches!(results[*output], Made::Output | Made::GradInput));
            let mut groups: Vec<usize> = by_rows.flat_map(|(_, sample)| &sample.rows).map(|row| row / GROUP).collect();
            groups.extend(find(Given::GradOutput).into_iter().flat_map(loud_rows::groups_in));
            groups.sort_unstable();
            groups.dedup();
            let rows = loud_rows::rows_of(&groups, input.rows);
            let parameters: Vec<Rows> = (0..).map_while(|of| find(Given::Parameter(of))).map(whole).collect();
            let gradient = find(Given::GradOutput).map(|gradient| Rows::some_of(gradient, &rows));
            let exactly = self.model.exact(layers, &Rows::some_of(input, &rows), &parameters, gradient.as_ref());
            (rows, exactly)
        });
        let sampled = |(output, sample): &(usize, Sample)| {
            let needed = "a pass is given what its outputs are made of";
            let in_rows = |computed: &Rows, rows: &[usize]| {
                let row = |row: &usize| rows.binary_search(row).expect("sampled rows are computed");
                let rows: Vec<usize> = sample.rows.iter().map(row).collect();
                picked(computed, &Sample { rows, cols: sample.cols.clone() })
            };
            let gradient_of = |of: usize| match &computed {
                Some((_, Exactly { gradients: Some((_, gradients)), .. })) => picked(&gradients[of], sample),
                _ => picked_of(find(Given::Gradient(of)).expect(needed), sample),
            };
            let (rows, exactly) = match (results[*output], &computed) {
                (Made::Output | Made::GradInput, computed) => computed.as_ref().expect(needed),
                (Made::Gradient(of), _) => return gradient_of(of),
                (Made::Parameter(of) | Made::Moment(_, of), _) => {
                    let held = |wanted| find(wanted).map(|matrix| picked_of(matrix, sample));
                    let parameter = held(Given::Parameter(of)).expect(needed);
                    let moments = held(Given::Moment(0, of)).zip(held(Given::Moment(1, of)));
                    let updated = |(at, gradient): (usize, f64)| match &moments {
                        None => optimizers::exact_sgd(parameter[at], gradient),
                        Some((mean, square)) => {
                            let (parameter, moments) =
                                optimizers::exact_adamw(parameter[at], gradient, [mean[at], square[at]]);
                            if let Made::Moment(which, _) = results[*output] { moments[which] } else { parameter }
                        }
                    };
                    return gradient_of(of).into_iter().enumerate().map(updated).collect();
                }
            };
            match &exactly.gradients {
                Some((input, _)) if results[*output] == Made::GradInput => in_rows(input, rows),
                _ => in_rows(&exactly.output, rows),
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
