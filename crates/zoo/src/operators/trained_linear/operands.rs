//! The operands of a layer's products, as a recipe stores them.

use super::{Given, TrainedLinear};
use crate::Matrix;
use calorimeter_recipes::format::Format;
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::training::Operands as Formats;
use calorimeter_recipes::{Float8Training, TrainingRecipe};
use rayon::prelude::*;

/// One of a layer's products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    Output,
    GradInput,
    GradWeight,
}

/// What the two operands of a product stand for: it sums up rows of both.
pub struct Operands {
    pub left: Matrix,
    pub right: Matrix,
}

impl Operands {
    /// Those of a product, of what a pass is given.
    pub fn of(product: Product, pass: TrainedLinear, inputs: &[Matrix], recipe: Option<TrainingRecipe>) -> Self {
        let given = |wanted: Given| {
            let at = pass.given().iter().position(|given| *given == wanted);
            &inputs[at.expect("a pass is given what it multiplies")]
        };
        let formats = |of: fn(Float8Training) -> Option<Formats>| recipe.and_then(|recipe| of(recipe.training()));
        let (left, right, formats) = match product {
            Product::Output => (given(Given::Input).clone(), given(Given::Weight).clone(), formats(|of| of.output)),
            Product::GradInput => {
                (given(Given::GradOutput).clone(), transposed(given(Given::Weight)), formats(|of| of.grad_input))
            }
            Product::GradWeight => {
                (transposed(given(Given::GradOutput)), transposed(given(Given::Input)), formats(|of| of.grad_weight))
            }
        };
        match formats {
            None => Self { left, right },
            Some(formats) => Self { left: stands_for(left, formats.left), right: stands_for(right, formats.right) },
        }
    }
}

fn stands_for(matrix: Matrix, format: Option<Format>) -> Matrix {
    let Some(format) = format else { return matrix };
    let values = quantize(&matrix.values, matrix.cols, format).dequantize();
    Matrix { values: values.into(), ..matrix }
}

fn transposed(matrix: &Matrix) -> Matrix {
    // Columns of the matrix that lie beside each other in a line of a processor's cache.
    const BESIDE: usize = 16;
    let Matrix { rows, cols, values } = matrix;
    let mut turned = vec![0.0; values.len()];
    turned.par_chunks_mut(BESIDE * rows).enumerate().for_each(|(band, turned)| {
        let first = band * BESIDE;
        for (row, from) in values.chunks(*cols).enumerate() {
            let beside = &from[first..(first + BESIDE).min(*cols)];
            beside.iter().enumerate().for_each(|(col, value)| turned[col * rows + row] = *value);
        }
    });
    Matrix { rows: *cols, cols: *rows, values: turned.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transpose_has_columns_for_rows() {
        for (rows, cols) in [(3, 5), (40, 33), (1, 70), (17, 1)] {
            let values: Vec<f32> = (0..rows * cols).map(|at| at as f32).collect();
            let turned = transposed(&Matrix { rows, cols, values: values.into() });
            assert_eq!((turned.rows, turned.cols), (cols, rows));
            let right = |at: usize| turned.values[at] == (at % rows * cols + at / rows) as f32;
            assert!((0..rows * cols).all(right), "{rows} x {cols}");
        }
    }
}
