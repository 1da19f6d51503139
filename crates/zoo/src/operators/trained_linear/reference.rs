//! What it computes, in double precision, and how far a kernel may be from that.

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

    /// Outputs that follow from the same product share its operands, and its sums where they are sampled alike.
    fn references(&self, spec: &Spec, inputs: &[Matrix], samples: &[(usize, Sample)]) -> Vec<Vec<f64>> {
        let mut last: Option<(Product, Operands)> = None;
        let mut summed: Option<(Product, Sample, Vec<f64>)> = None;
        let mut sums = |product: Product, sample: &Sample| {
            if let Some((_, _, sums)) = summed.as_ref().filter(|(of, at, _)| *of == product && at == sample) {
                return sums.clone();
            }
            // Those of another product need no memory any more.
            last.take_if(|(known, _)| *known != product);
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
        // Both scales, and the product.
        let roundings = if spec.training.is_some() { 3 } else { 1 };
        let product = |depth| Tolerance::new(spec.dtype(), roundings, depth);
        let fast = spec.training.is_some_and(TrainingRecipe::is_fast);
        match self.results()[output] {
            Made::Output if fast => product(k).with_fast_sums(1, k),
            Made::Output => product(k),
            Made::GradInput => product(n),
            Made::GradWeight => product(m),
            // In f32, but for the rounding to the weight's type.
            Made::Weight if self.is_optimizer() => Tolerance::new(spec.dtype(), 6, 4),
            Made::Moment(_) if self.is_optimizer() => Tolerance::new(Dtype::F32, 6, 4),
            // The gradient was rounded before, and one of the moments squares it.
            Made::Weight | Made::Moment(_) => Tolerance::new(spec.dtype(), roundings + 6, m),
        }
    }
}

/// The product that a result is, if it is one.
fn product(result: Made) -> Option<Product> {
    match result {
        Made::Output => Some(Product::Output),
        Made::GradInput => Some(Product::GradInput),
        Made::GradWeight => Some(Product::GradWeight),
        Made::Weight | Made::Moment(_) => None,
    }
}

impl TrainedLinear {
    /// One of its results, from the sums of its products.
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
        let given = |wanted: Given| self.given().iter().position(|given| *given == wanted).map(|at| &inputs[at]);
        // What a step has multiplied itself is rounded to the type of the weight before it is used.
        let gradient: Vec<f64> = match given(Given::GradWeight) {
            Some(gradient) => sample.by_elements(|row, col| f64::from(gradient.row(row)[col])),
            None => sums(Product::GradWeight, sample),
        };
        let weight = given(Given::Weight).expect("an optimizer is given weights");
        let moments = given(Given::Moment(0)).zip(given(Given::Moment(1)));
        let at = |matrix: &Matrix, (row, col): (usize, usize)| f64::from(matrix.row(row)[col]);
        let updated = |(index, gradient): (usize, &f64)| {
            let place = sample.position(index);
            let weight = at(weight, place);
            let Some((mean, square)) = moments else { return optimizers::exact_sgd(weight, *gradient) };
            let (weight, moments) = optimizers::exact_adamw(weight, *gradient, [at(mean, place), at(square, place)]);
            match result {
                Made::Moment(of) => moments[of],
                _ => weight,
            }
        };
        gradient.iter().enumerate().map(updated).collect()
    }
}

impl Operands {
    /// Sampled sums of the product, in double precision.
    fn products(&self, sample: &Sample) -> Vec<f64> {
        sample.by_rows(|row| {
            let row = self.left.exact_row(row);
            sample.cols.iter().map(|&col| dot(&row, self.right.row(col))).collect()
        })
    }
}
