//! Double-precision reference, projection and tolerance of the training passes.

use super::operands::{Operands, Product};
use super::{Given, Made, TrainedLinear, optimizers};
use crate::gate::{Projection, Tolerance};
use crate::operators::product::size;
use crate::reference::{dot, projected};
use crate::{Exact, Matrix, Sample, Spec};
use calorimeter_recipes::{Dtype, TrainingRecipe};

impl Exact for TrainedLinear {
    fn depth(&self, spec: &Spec, output: usize) -> u64 {
        let (m, k, n) = size(spec);
        match self.results()[output] {
            Made::Output => k,
            Made::GradInput => n,
            _ if self.is_optimizer() => 4,
            Made::GradWeight | Made::Weight | Made::Moment(_) => m,
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64> {
        self.references(spec, inputs, &[(output, sample.clone())]).remove(0)
    }

    /// Outputs of one matmul share its operands, and its results if their samples are equal.
    fn references(&self, spec: &Spec, inputs: &[Matrix], samples: &[(usize, Sample)]) -> Vec<Vec<f64>> {
        let mut last: Option<(Product, Operands)> = None;
        let mut summed: Option<(Product, Sample, Vec<f64>)> = None;
        let mut sums = |product: Product, sample: &Sample| {
            if let Some((_, _, sums)) =
                summed.as_ref().filter(|(other, other_sample, _)| *other == product && other_sample == sample)
            {
                return sums.clone();
            }
            // Frees the operands of the previous matmul.
            last.take_if(|(other, _)| *other != product);
            let operands = || (product, Operands::of(product, *self, inputs, spec.training));
            let sums = last.get_or_insert_with(operands).1.products(sample);
            summed.insert((product, sample.clone(), sums)).2.clone()
        };
        samples.iter().map(|(output, sample)| self.result(*output, inputs, sample, &mut sums)).collect()
    }

    fn projection(&self, spec: &Spec, inputs: &[Matrix], output: usize) -> Option<Projection> {
        let Operands { left, right } = Operands::of(product(self.results()[output])?, *self, inputs, spec.training);
        let sides = [left.rows, left.cols, right.rows];
        Some(projected(sides, |row| left.exact_row(row), |col| right.exact_row(col)))
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        let (m, k, n) = size(spec);
        // Both scales, and the matmul.
        let roundings = if spec.training.is_some() { 3 } else { 1 };
        let product = |depth| Tolerance::new(spec.dtype(), roundings, depth);
        let fast = spec.training.is_some_and(TrainingRecipe::is_fast);
        match self.results()[output] {
            Made::Output if fast => product(k).with_fast_sums(1, k),
            Made::Output => product(k),
            Made::GradInput => product(n),
            Made::GradWeight => product(m),
            // f32 except for the final rounding to the dtype of the weights.
            Made::Weight if self.is_optimizer() => Tolerance::new(spec.dtype(), 6, 4),
            Made::Moment(_) if self.is_optimizer() => Tolerance::new(Dtype::F32, 6, 4),
            // The gradient was rounded before, and the second moment squares it.
            Made::Weight | Made::Moment(_) => Tolerance::new(spec.dtype(), roundings + 6, m),
        }
    }
}

/// Matmul that computes an output; `None` for weights and moments.
fn product(result: Made) -> Option<Product> {
    match result {
        Made::Output => Some(Product::Output),
        Made::GradInput => Some(Product::GradInput),
        Made::GradWeight => Some(Product::GradWeight),
        Made::Weight | Made::Moment(_) => None,
    }
}

impl TrainedLinear {
    /// Sampled values of an output; `sums` computes sampled matmuls.
    fn result(
        self,
        output: usize,
        inputs: &[Matrix],
        sample: &Sample,
        sums: &mut impl FnMut(Product, &Sample) -> Vec<f64>,
    ) -> Vec<f64> {
        let result = self.results()[output];
        if let Some(product) = product(result) {
            return sums(product, sample);
        }
        let find = |input: Given| self.given().iter().position(|other| *other == input).map(|index| &inputs[index]);
        // The gradient that a whole step computes; kernels round it to the dtype of the weights before they use it.
        let gradient: Vec<f64> = match find(Given::GradWeight) {
            Some(gradient) => sample.by_elements(|row, col| f64::from(gradient.row(row)[col])),
            None => sums(Product::GradWeight, sample),
        };
        let weight = find(Given::Weight).expect("an optimizer has weights");
        let moments = find(Given::Moment(0)).zip(find(Given::Moment(1)));
        let element = |matrix: &Matrix, (row, col): (usize, usize)| f64::from(matrix.row(row)[col]);
        let updated = |(index, gradient): (usize, &f64)| {
            let position = sample.position(index);
            let weight = element(weight, position);
            let Some((mean, square)) = moments else { return optimizers::exact_sgd(weight, *gradient) };
            let (weight, moments) =
                optimizers::exact_adamw(weight, *gradient, [element(mean, position), element(square, position)]);
            match result {
                Made::Moment(index) => moments[index],
                _ => weight,
            }
        };
        gradient.iter().enumerate().map(updated).collect()
    }
}

impl Operands {
    /// Sampled elements of left rightᵀ in double precision.
    fn products(&self, sample: &Sample) -> Vec<f64> {
        sample.by_rows(|row| {
            let row = self.left.exact_row(row);
            sample.cols.iter().map(|&col| dot(&row, self.right.row(col))).collect()
        })
    }
}
