//! Matmul operands of a trained linear layer, as a training recipe quantizes them.

use super::{PassInput, TrainedLinear};
use crate::Matrix;
use calorimeter_recipes::format::Format;
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::training::OperandFormats as Formats;
use calorimeter_recipes::{Float8Training, TrainingRecipe};
use rayon::prelude::*;

/// Matmul of a trained linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrainingMatmul {
    Output,
    GradInput,
    GradWeight,
}

/// Dequantized operands of a matmul, both stored with the reduction dimension along rows: output = left rightᵀ.
pub(super) struct TrainingOperands {
    pub left: Matrix,
    pub right: Matrix,
}

impl TrainingOperands {
    /// Operands of a matmul from the inputs of a pass.
    pub(super) fn new(
        product: TrainingMatmul,
        pass: TrainedLinear,
        inputs: &[Matrix],
        recipe: Option<TrainingRecipe>,
    ) -> Self {
        let get = |input: PassInput| {
            let index = pass.pass_inputs().iter().position(|other| *other == input);
            &inputs[index.expect("the pass has the operands of its matmuls")]
        };
        let formats =
            |select: fn(Float8Training) -> Option<Formats>| recipe.and_then(|recipe| select(recipe.training()));
        let (left, right, formats) = match product {
            TrainingMatmul::Output => {
                (get(PassInput::Input).clone(), get(PassInput::Weight).clone(), formats(|training| training.output))
            }
            TrainingMatmul::GradInput => (
                get(PassInput::GradOutput).clone(),
                transpose(get(PassInput::Weight)),
                formats(|training| training.grad_input),
            ),
            TrainingMatmul::GradWeight => (
                transpose(get(PassInput::GradOutput)),
                transpose(get(PassInput::Input)),
                formats(|training| training.grad_weight),
            ),
        };
        match formats {
            None => Self { left, right },
            Some(formats) => {
                Self { left: fake_quantize(left, formats.left), right: fake_quantize(right, formats.right) }
            }
        }
    }
}

fn fake_quantize(matrix: Matrix, format: Option<Format>) -> Matrix {
    let Some(format) = format else { return matrix };
    let values = quantize(&matrix.values, matrix.cols, format).dequantize();
    Matrix { values: values.into(), ..matrix }
}

fn transpose(matrix: &Matrix) -> Matrix {
    // Columns that share a cache line: 16 f32.
    const CACHE_LINE_COLUMNS: usize = 16;
    let Matrix { rows, cols, values } = matrix;
    let mut result = vec![0.0; values.len()];
    result.par_chunks_mut(CACHE_LINE_COLUMNS * rows).enumerate().for_each(|(band, result)| {
        let first = band * CACHE_LINE_COLUMNS;
        for (row, from) in values.chunks(*cols).enumerate() {
            let columns = &from[first..(first + CACHE_LINE_COLUMNS).min(*cols)];
            columns.iter().enumerate().for_each(|(col, value)| result[col * rows + row] = *value);
        }
    });
    Matrix { rows: *cols, cols: *rows, values: result.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transpose_swaps_rows_and_columns() {
        for (rows, cols) in [(3, 5), (40, 33), (1, 70), (17, 1)] {
            let values: Vec<f32> = (0..rows * cols).map(|index| index as f32).collect();
            let result = transpose(&Matrix { rows, cols, values: values.into() });
            assert_eq!((result.rows, result.cols), (cols, rows));
            let is_correct = |index: usize| result.values[index] == (index % rows * cols + index / rows) as f32;
            assert!((0..rows * cols).all(is_correct), "{rows} x {cols}");
        }
    }
}
