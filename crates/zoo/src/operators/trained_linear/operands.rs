//! Matmul operands of a trained linear layer, as a training recipe quantizes them.

use super::{Given, TrainedLinear};
use crate::Matrix;
use calorimeter_recipes::format::Format;
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::training::Operands as Formats;
use calorimeter_recipes::{Float8Training, TrainingRecipe};
use rayon::prelude::*;

/// Matmul of a trained linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    Output,
    GradInput,
    GradWeight,
}

/// Dequantized operands of a matmul, both stored with the reduction dimension along rows: output = left rightᵀ.
pub struct Operands {
    pub left: Matrix,
    pub right: Matrix,
}

impl Operands {
    /// Operands of a matmul from the inputs of a pass.
    pub fn of(product: Product, pass: TrainedLinear, inputs: &[Matrix], recipe: Option<TrainingRecipe>) -> Self {
        let get = |input: Given| {
            let index = pass.given().iter().position(|other| *other == input);
            &inputs[index.expect("the pass has the operands of its matmuls")]
        };
        let formats =
            |select: fn(Float8Training) -> Option<Formats>| recipe.and_then(|recipe| select(recipe.training()));
        let (left, right, formats) = match product {
            Product::Output => {
                (get(Given::Input).clone(), get(Given::Weight).clone(), formats(|training| training.output))
            }
            Product::GradInput => (
                get(Given::GradOutput).clone(),
                transposed(get(Given::Weight)),
                formats(|training| training.grad_input),
            ),
            Product::GradWeight => (
                transposed(get(Given::GradOutput)),
                transposed(get(Given::Input)),
                formats(|training| training.grad_weight),
            ),
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
    // Columns that share a cache line: 16 f32.
    const BESIDE: usize = 16;
    let Matrix { rows, cols, values } = matrix;
    let mut result = vec![0.0; values.len()];
    result.par_chunks_mut(BESIDE * rows).enumerate().for_each(|(band, result)| {
        let first = band * BESIDE;
        for (row, from) in values.chunks(*cols).enumerate() {
            let columns = &from[first..(first + BESIDE).min(*cols)];
            columns.iter().enumerate().for_each(|(col, value)| result[col * rows + row] = *value);
        }
    });
    Matrix { rows: *cols, cols: *rows, values: result.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transpose_has_columns_for_rows() {
        for (rows, cols) in [(3, 5), (40, 33), (1, 70), (17, 1)] {
            let values: Vec<f32> = (0..rows * cols).map(|index| index as f32).collect();
            let result = transposed(&Matrix { rows, cols, values: values.into() });
            assert_eq!((result.rows, result.cols), (cols, rows));
            let is_correct = |index: usize| result.values[index] == (index % rows * cols + index / rows) as f32;
            assert!((0..rows * cols).all(is_correct), "{rows} x {cols}");
        }
    }
}
