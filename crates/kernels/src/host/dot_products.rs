//! GEMM of few rows with a stored weight, as one dot product per output.
//!
//! Data flow: each thread computes some columns, i.e. rows of the weight, four at a time. It reads a block of 128
//! stored values, converts them to floats in registers, and multiplies them with the matching block of up to four rows
//! of x, which stay in the cache. Each output has sixteen partial sums, which are added at the end of a row.
//!
//! Rows of 4-bit values are too short for the prefetcher of the processor, so the next four rows are prefetched in
//! software.
//!
//! Traffic: the stored weight once, m * k of x, m * n of y. Roofline: up to four rows memory bandwidth. 4-bit values
//! need three instructions per sixteen values; a core with two vector units spends as much time on them as on 16 to 32
//! bytes of memory. Beyond four rows the weight is read once more from the cache for every four rows.

use super::float_isa::FloatIsa;
use super::float_simd::{AlignedFloats, FloatSimd, FloatTask, WIDTH};
use super::partition::{OutputPart, OutputPartition, run_parallel};
use super::prefetch::prefetch;
use super::weights::{BLOCK, VECTORS, WeightRow, WeightRows};
use std::array;

/// Weight rows that are read interleaved, which opens several memory streams.
const UNROLLED_COLUMNS: usize = 4;

/// Block of x.
type InputBlock = [AlignedFloats; VECTORS];

/// Computes `y[m, n] = x[m, k] * weight[n, k]ᵀ`.
pub(super) fn run<R: WeightRows>(
    set: FloatIsa,
    partition: OutputPartition,
    rows: &R,
    x: &[f32],
    k: usize,
    y: &mut [f32],
    n: usize,
) {
    let x = blocks(x, k, R::STRIDED);
    run_parallel(partition.parts(y, n), |part| set.run(DotTask { rows, x: &x, blocks: k.div_ceil(BLOCK), part }));
}

/// Rearranges x into blocks in the element order of the weight's vectors, padded with zeros.
fn blocks(x: &[f32], k: usize, strided: bool) -> Vec<InputBlock> {
    let per_row = k.div_ceil(BLOCK);
    let mut blocks = vec![[AlignedFloats([0.0; WIDTH]); VECTORS]; x.len() / k * per_row];
    for (row, x) in x.chunks(k).enumerate() {
        for (i, &x) in x.iter().enumerate() {
            let (block, at) = (row * per_row + i / BLOCK, i % BLOCK);
            let (vector, lane) = if strided { (at % VECTORS, at / VECTORS) } else { (at / WIDTH, at % WIDTH) };
            blocks[block][vector].0[lane] = x;
        }
    }
    blocks
}

struct DotTask<'a, R> {
    rows: &'a R,
    x: &'a [InputBlock],
    blocks: usize,
    part: OutputPart<'a>,
}

impl<R: WeightRows> FloatTask for DotTask<'_, R> {
    #[inline(always)]
    fn execute<L: FloatSimd>(mut self, lanes: L) {
        let columns = self.part.outputs.first().map_or(0, |row| row.len());
        let whole = columns / UNROLLED_COLUMNS * UNROLLED_COLUMNS;
        for at in (0..whole).step_by(UNROLLED_COLUMNS) {
            self.columns::<L, UNROLLED_COLUMNS>(lanes, at);
        }
        for at in whole..columns {
            self.columns::<L, 1>(lanes, at);
        }
    }
}

impl<R: WeightRows> DotTask<'_, R> {
    #[inline(always)]
    fn columns<L: FloatSimd, const N: usize>(&mut self, lanes: L, at: usize) {
        let rows = self.part.outputs.len();
        let mut row = 0;
        while row < rows {
            row += match rows - row {
                4.. => self.dots::<L, N, 4>(lanes, at, row),
                2.. => self.dots::<L, N, 2>(lanes, at, row),
                _ => self.dots::<L, N, 1>(lanes, at, row),
            };
        }
    }

    /// Computes the outputs of `M` rows and `N` columns; returns `M`.
    #[inline(always)]
    fn dots<L: FloatSimd, const N: usize, const M: usize>(&mut self, lanes: L, at: usize, row: usize) -> usize {
        let mut x = [&self.x[..0]; M];
        for (m, x) in x.iter_mut().enumerate() {
            *x = &self.x[(self.part.row + row + m) * self.blocks..][..self.blocks];
        }
        let next = if at + 2 * N <= self.part.outputs[row].len() { at + N } else { at };
        let [rows, next_rows]: [[R::Row<'_>; N]; 2] =
            [at, next].map(|first| array::from_fn(|n| self.rows.row(self.part.column + first + n)));
        let whole = rows[0].whole_blocks().len().min(self.blocks);
        let mut sums = [[lanes.splat(0.0); M]; N];
        for block in 0..whole {
            for ((sums, row), next_row) in sums.iter_mut().zip(&rows).zip(&next_rows) {
                prefetch(&next_row.whole_blocks()[block]);
                let weights = row.dequantize(lanes, &row.whole_blocks()[block], block);
                add_products(lanes, &weights, &x, block, sums);
            }
        }
        if whole < self.blocks {
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let weights = row.dequantize(lanes, &row.last_block(), whole);
                add_products(lanes, &weights, &x, whole, sums);
            }
        }
        for (n, sums) in sums.iter().enumerate() {
            let scale = self.rows.scale(self.part.column + at + n);
            for (m, &sum) in sums.iter().enumerate() {
                self.part.outputs[row + m][at + n] = scale * lanes.sum(sum);
            }
        }
        M
    }
}

/// Adds the products of a block of a weight row with the block of each row of x.
#[inline(always)]
fn add_products<L: FloatSimd, const M: usize>(
    lanes: L,
    weights: &[L::Floats; VECTORS],
    x: &[&[InputBlock]; M],
    block: usize,
    sums: &mut [L::Floats; M],
) {
    for (sum, x) in sums.iter_mut().zip(x) {
        for (&weights, x) in weights.iter().zip(&x[block]) {
            *sum = lanes.multiply_add(weights, lanes.load(&x.0), *sum);
        }
    }
}
