//! Double-precision reference, projection and tolerance of the quantized GEMM operators.

use super::{Fp8Granularity, GemmQuantized, ScaleMode};
use crate::gate::{Projection, Tolerance};
use crate::operators::amax_scaling::{self, STATIC_AMAX, amax, quantized_value};
use crate::operators::matmul::{column, dims, sampled_products};
use crate::reference::project_matmul;
use crate::{ExactReference, Matrix, OutputSample, Spec};
use calorimeter_recipes::format::{Format, MxScaling};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element};
use rayon::prelude::*;

impl ExactReference for GemmQuantized {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let (a, b, amax) = (&inputs[0], &inputs[1], self.block_amax(&inputs[1]));
        sampled_products(sample, |row| self.multiplied_line(a.row(row)), |col| self.multiplied_column(b, col, &amax))
    }

    fn projection(&self, spec: &Spec, inputs: &[Matrix], _: usize) -> Option<Projection> {
        let (a, b, amax) = (&inputs[0], &inputs[1], self.block_amax(&inputs[1]));
        let exact = |line: Vec<f32>| line.into_iter().map(f64::from).collect();
        let row = |row: usize| exact(self.multiplied_line(a.row(row)));
        Some(project_matmul(dims(spec), row, |col| exact(self.multiplied_column(b, col, &amax))))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(Dtype::Bf16, 1, spec.axis("k"))
    }
}

impl GemmQuantized {
    /// Amax of the 128 x 128 blocks of B; empty if blocks are parts of a single column.
    fn block_amax(self, b: &Matrix) -> Vec<Vec<f32>> {
        if self.0 == Fp8Granularity::Block128 { amax_of_blocks(b) } else { Vec::new() }
    }

    /// Values that a row of A or a column of B is multiplied with: quantized, and times the scale where the operator
    /// applies it.
    fn multiplied_line(self, line: &[f32]) -> Vec<f32> {
        match self {
            Self(Fp8Granularity::Mx32, ScaleMode::Dynamic) => {
                quantize(line, line.len(), Format::mx(Element::E4m3, MxScaling::Ceil)).dequantize()
            }
            _ => {
                let block = self.block_k(line.len() as u64) as usize;
                line.chunks(block).flat_map(|block| self.multiplied_block(block, amax(block))).collect()
            }
        }
    }

    /// Values that the elements of one block are multiplied with, given the amax of the block.
    fn multiplied_block(self, block: &[f32], magnitude: f32) -> Vec<f32> {
        let magnitude = if self.1 == ScaleMode::Static { STATIC_AMAX } else { magnitude };
        let scale = amax_scaling::scale(magnitude, Element::E4m3, self.precision());
        let unit = if self.0 == Fp8Granularity::RowColumn { 1.0 } else { scale };
        block.iter().map(|&x| unit * quantized_value(x, scale, Element::E4m3, self.precision())).collect()
    }

    /// Values that a column of B is multiplied with; `amax` holds one row per block row.
    fn multiplied_column(self, matrix: &Matrix, col: usize, amax: &[Vec<f32>]) -> Vec<f32> {
        let column = column(matrix, col);
        match self {
            Self(Fp8Granularity::Block128, ScaleMode::Dynamic) => {
                let blocks = column.chunks(128).zip(amax);
                blocks.flat_map(|(block, amax)| self.multiplied_block(block, amax[col / 128])).collect()
            }
            _ => self.multiplied_line(&column),
        }
    }
}

/// Amax of each 128 x 128 block, by block row.
fn amax_of_blocks(matrix: &Matrix) -> Vec<Vec<f32>> {
    let block_amax =
        |rows: &[f32], first: usize| amax(rows.chunks(matrix.cols).flat_map(|row| row[first..].iter().take(128)));
    let blocks = matrix.values.par_chunks(128 * matrix.cols);
    blocks.map(|rows| (0..matrix.cols).step_by(128).map(|first| block_amax(rows, first)).collect()).collect()
}
