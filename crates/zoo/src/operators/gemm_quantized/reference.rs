//! Double-precision reference, projection and tolerance of the quantized GEMM operators.

use super::{GemmQuantized, Scaling, Shared};
use crate::gate::{Projection, Tolerance};
use crate::operators::absmax::{self, FIXED, code, magnitude};
use crate::operators::product::{column, products, sides};
use crate::reference::projected;
use crate::{Exact, Matrix, Sample, Spec};
use calorimeter_recipes::format::{Format, MxScaling};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{Dtype, Element};
use rayon::prelude::*;

impl Exact for GemmQuantized {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let (a, b, amax) = (&inputs[0], &inputs[1], self.tops(&inputs[1]));
        products(sample, |row| self.line(a.row(row)), |col| self.column(b, col, &amax))
    }

    fn projection(&self, spec: &Spec, inputs: &[Matrix], _: usize) -> Option<Projection> {
        let (a, b, amax) = (&inputs[0], &inputs[1], self.tops(&inputs[1]));
        let exact = |line: Vec<f32>| line.into_iter().map(f64::from).collect();
        let row = |row: usize| exact(self.line(a.row(row)));
        Some(projected(sides(spec), row, |col| exact(self.column(b, col, &amax))))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(Dtype::Bf16, 1, spec.axis("k"))
    }
}

impl GemmQuantized {
    /// Amax of the 128 x 128 blocks of B; empty if blocks are parts of a single column.
    fn tops(self, b: &Matrix) -> Vec<Vec<f32>> {
        if self.0 == Shared::Block { tops(b) } else { Vec::new() }
    }

    /// Values that a row of A or a column of B is multiplied with: quantized, and times the scale where the operator
    /// applies it.
    fn line(self, line: &[f32]) -> Vec<f32> {
        match self {
            Self(Shared::Micro, Scaling::Dynamic) => {
                quantize(line, line.len(), Format::mx(Element::E4m3, MxScaling::Ceil)).dequantize()
            }
            _ => {
                let block = self.along_k(line.len() as u64) as usize;
                line.chunks(block).flat_map(|block| self.block(block, magnitude(block))).collect()
            }
        }
    }

    /// Values that the elements of one block are multiplied with, given the amax of the block.
    fn block(self, block: &[f32], magnitude: f32) -> Vec<f32> {
        let magnitude = if self.1 == Scaling::Static { FIXED } else { magnitude };
        let scale = absmax::scale(magnitude, Element::E4m3, self.steps());
        let unit = if self.0 == Shared::Line { 1.0 } else { scale };
        block.iter().map(|&x| unit * code(x, scale, Element::E4m3, self.steps())).collect()
    }

    /// Values that a column of B is multiplied with; `amax` holds one row per block row.
    fn column(self, matrix: &Matrix, col: usize, amax: &[Vec<f32>]) -> Vec<f32> {
        let column = column(matrix, col);
        match self {
            Self(Shared::Block, Scaling::Dynamic) => {
                let blocks = column.chunks(128).zip(amax);
                blocks.flat_map(|(block, amax)| self.block(block, amax[col / 128])).collect()
            }
            _ => self.line(&column),
        }
    }
}

/// Amax of each 128 x 128 block, by block row.
fn tops(matrix: &Matrix) -> Vec<Vec<f32>> {
    let block_amax =
        |rows: &[f32], first: usize| magnitude(rows.chunks(matrix.cols).flat_map(|row| row[first..].iter().take(128)));
    let blocks = matrix.values.par_chunks(128 * matrix.cols);
    blocks.map(|rows| (0..matrix.cols).step_by(128).map(|first| block_amax(rows, first)).collect()).collect()
}
