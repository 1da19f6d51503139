//! Few rows times a stored weight, a dot product for each output.
//!
//! Data flow: each thread takes some columns, which are rows of the weight, four at a time; of each it reads a block of 128
//! stored numbers, makes them floats in registers and multiplies them with the same block of up to four rows of x, which
//! stay in the cache. Sixteen partial sums for each output are added up at the end of a row.
//!
//! Traffic: the stored weight once, m * k of x, m * n of y. Roofline: up to four rows that is the memory's, the bytes of the
//! weight over its bandwidth; codes of four bits cost three instructions for sixteen numbers, which cores of two vector
//! units take as long for as for 16 to 32 bytes of memory. Beyond four rows the weight is read once more for every four of
//! them, from the cache.

use super::cut::{Cut, Part, share_out};
use super::float_set::FloatSet;
use super::lanes::{FloatJob, Lanes, Sixteen, WIDTH};
use super::weights::{BLOCK, Rows, VECTORS};

/// Rows of the weight that are read in turn, so that several streams of memory are open.
const TOGETHER: usize = 4;

/// A block of x.
type Block = [Sixteen; VECTORS];

/// Computes `y[m, n] = x[m, k] * weight[n, k]ᵀ`.
pub fn run<R: Rows>(set: FloatSet, cut: Cut, rows: &R, x: &[f32], k: usize, y: &mut [f32], n: usize) {
    let x = blocks(x, k, R::STRIDED);
    share_out(cut.parts(y, n), |part| set.run(Dots { rows, x: &x, blocks: k.div_ceil(BLOCK), part }));
}

/// Rows of x in blocks, in the order in which vectors of the weight have them, filled up with zeros.
fn blocks(x: &[f32], k: usize, strided: bool) -> Vec<Block> {
    let per_row = k.div_ceil(BLOCK);
    let mut blocks = vec![[Sixteen([0.0; WIDTH]); VECTORS]; x.len() / k * per_row];
    for (row, x) in x.chunks(k).enumerate() {
        for (i, &x) in x.iter().enumerate() {
            let (block, at) = (row * per_row + i / BLOCK, i % BLOCK);
            let (vector, lane) = if strided { (at % VECTORS, at / VECTORS) } else { (at / WIDTH, at % WIDTH) };
            blocks[block][vector].0[lane] = x;
        }
    }
    blocks
}

struct Dots<'a, R> {
    rows: &'a R,
    x: &'a [Block],
    blocks: usize,
    part: Part<'a>,
}

impl<R: Rows> FloatJob for Dots<'_, R> {
    #[inline(always)]
    fn on<L: Lanes>(mut self, lanes: L) {
        let columns = self.part.outputs.first().map_or(0, |row| row.len());
        let whole = columns / TOGETHER * TOGETHER;
        for at in (0..whole).step_by(TOGETHER) {
            self.columns::<L, TOGETHER>(lanes, at);
        }
        for at in whole..columns {
            self.columns::<L, 1>(lanes, at);
        }
    }
}

impl<R: Rows> Dots<'_, R> {
    #[inline(always)]
    fn columns<L: Lanes, const N: usize>(&mut self, lanes: L, at: usize) {
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

    /// The outputs of `M` rows in `N` columns; answers how many rows there were.
    #[inline(always)]
    fn dots<L: Lanes, const N: usize, const M: usize>(&mut self, lanes: L, at: usize, row: usize) -> usize {
        let mut x = [&self.x[..0]; M];
        for (m, x) in x.iter_mut().enumerate() {
            *x = &self.x[(self.part.row + row + m) * self.blocks..][..self.blocks];
        }
        let mut sums = [[lanes.splat(0.0); M]; N];
        for block in 0..self.blocks {
            for (n, sums) in sums.iter_mut().enumerate() {
                let weights = self.rows.block(lanes, self.part.column + at + n, block);
                for (vector, &weights) in weights.iter().enumerate() {
                    for (sum, x) in sums.iter_mut().zip(&x) {
                        *sum = lanes.multiply_add(weights, lanes.load(&x[block][vector].0), *sum);
                    }
                }
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
