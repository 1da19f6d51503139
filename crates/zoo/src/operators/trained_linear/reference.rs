//! Double-precision reference, projection and tolerance of the training passes.

use super::operands::{TrainingMatmul, TrainingOperands};
use super::{PassInput, PassOutput, TrainedLinear, optimizers};
use crate::gate::{Projection, Tolerance};
use crate::operators::matmul::size;
use crate::reference::{dot, project_matmul};
use crate::{ExactReference, Matrix, OutputSample, Spec};
use calorimeter_recipes::{Dtype, TrainingRecipe};

impl ExactReference for TrainedLinear {
    fn depth(&self, spec: &Spec, output: usize) -> u64 {
        let (m, k, n) = size(spec);
        match self.pass_outputs()[output] {
            PassOutput::Output => k,
            PassOutput::GradInput => n,
            _ if self.is_optimizer() => 4,
            PassOutput::GradWeight | PassOutput::Weight | PassOutput::Moment(_) => m,
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &OutputSample) -> Vec<f64> {
        self.references(spec, inputs, &[(output, sample.clone())]).remove(0)
    }

    /// Outputs of one matmul share its operands, and its results if their samples are equal.
    fn references(&self, spec: &Spec, inputs: &[Matrix], samples: &[(usize, OutputSample)]) -> Vec<Vec<f64>> {
        let mut last: Option<(TrainingMatmul, TrainingOperands)> = None;
        let mut summed: Option<(TrainingMatmul, OutputSample, Vec<f64>)> = None;
        let mut sums = |product: TrainingMatmul, sample: &OutputSample| {
            if let Some((_, _, sums)) =
                summed.as_ref().filter(|(other, other_sample, _)| *other == product && other_sample == sample)
            {
                return sums.clone();
            }
            // Frees the operands of the previous matmul.
            last.take_if(|(other, _)| *other != product);
            let operands = || (product, TrainingOperands::new(product, *self, inputs, spec.training));
            let sums = last.get_or_insert_with(operands).1.sampled_products(sample);
            summed.insert((product, sample.clone(), sums)).2.clone()
        };
        samples.iter().map(|(output, sample)| self.output_values(*output, inputs, sample, &mut sums)).collect()
    }

    fn projection(&self, spec: &Spec, inputs: &[Matrix], output: usize) -> Option<Projection> {
        let TrainingOperands { left, right } =
            TrainingOperands::new(output_matmul(self.pass_outputs()[output])?, *self, inputs, spec.training);
        let sides = [left.rows, left.cols, right.rows];
        Some(project_matmul(sides, |row| left.exact_row(row), |col| right.exact_row(col)))
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        let (m, k, n) = size(spec);
        // Both scales, and the matmul.
        let roundings = if spec.training.is_some() { 3 } else { 1 };
        let product = |depth| Tolerance::new(spec.dtype(), roundings, depth);
        let fast = spec.training.is_some_and(TrainingRecipe::has_fast_accumulation);
        match self.pass_outputs()[output] {
            PassOutput::Output if fast => product(k).with_fast_accumulation(1, k),
            PassOutput::Output => product(k),
            PassOutput::GradInput => product(n),
            PassOutput::GradWeight => product(m),
            // f32 except for the final rounding to the dtype of the weights.
            PassOutput::Weight if self.is_optimizer() => Tolerance::new(spec.dtype(), 6, 4),
            PassOutput::Moment(_) if self.is_optimizer() => Tolerance::new(Dtype::F32, 6, 4),
            // The gradient was rounded before, and the second moment squares it.
            PassOutput::Weight | PassOutput::Moment(_) => Tolerance::new(spec.dtype(), roundings + 6, m),
        }
    }
}

/// Matmul that computes an output; `None` for weights and moments.
fn output_matmul(result: PassOutput) -> Option<TrainingMatmul> {
    match result {
        PassOutput::Output => Some(TrainingMatmul::Output),
        PassOutput::GradInput => Some(TrainingMatmul::GradInput),
        PassOutput::GradWeight => Some(TrainingMatmul::GradWeight),
        PassOutput::Weight | PassOutput::Moment(_) => None,
    }
}

impl TrainedLinear {
    /// Sampled values of an output; `sums` computes sampled matmuls.
    fn output_values(
        self,
        output: usize,
        inputs: &[Matrix],
        sample: &OutputSample,
        sums: &mut impl FnMut(TrainingMatmul, &OutputSample) -> Vec<f64>,
    ) -> Vec<f64> {
        let result = self.pass_outputs()[output];
        if let Some(product) = output_matmul(result) {
            return sums(product, sample);
        }
        let find =
            |input: PassInput| self.pass_inputs().iter().position(|other| *other == input).map(|index| &inputs[index]);
        // The gradient that a whole step computes; kernels round it to the dtype of the weights before they use it.
        let gradient: Vec<f64> = match find(PassInput::GradWeight) {
            Some(gradient) => sample.map_elements(|row, col| f64::from(gradient.row(row)[col])),
            None => sums(TrainingMatmul::GradWeight, sample),
        };
        let weight = find(PassInput::Weight).expect("an optimizer has weights");
        let moments = find(PassInput::Moment(0)).zip(find(PassInput::Moment(1)));
        let element = |matrix: &Matrix, (row, col): (usize, usize)| f64::from(matrix.row(row)[col]);
        let updated = |(index, gradient): (usize, &f64)| {
            let position = sample.position(index);
            let weight = element(weight, position);
            let Some((mean, square)) = moments else { return optimizers::sgd_f64(weight, *gradient) };
            let (weight, moments) =
                optimizers::adamw_f64(weight, *gradient, [element(mean, position), element(square, position)]);
            match result {
                PassOutput::Moment(index) => moments[index],
                _ => weight,
            }
        };
        gradient.iter().enumerate().map(updated).collect()
    }
}

impl TrainingOperands {
    /// Sampled elements of left rightᵀ in double precision.
    fn sampled_products(&self, sample: &OutputSample) -> Vec<f64> {
        sample.map_rows(|row| {
            let row = self.left.exact_row(row);
            sample.cols.iter().map(|&col| dot(&row, self.right.row(col))).collect()
        })
    }
}
