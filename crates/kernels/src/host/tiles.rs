//! Many rows times a stored weight, in tiles whose sums stay in registers.
//!
//! Data flow: each thread takes some columns. It reads 32 rows of the weight, up to 4096 numbers of each, and writes them as
//! floats, turned, into a panel that stays in its second cache; then it goes through the rows of x, a tile of them at a time,
//! and adds to the tile's sums the products of a number of each row with a line of the panel.
//!
//! Traffic: the stored weight once for each part of rows, x once for every 32 columns, from the last cache, y once for every
//! 4096 numbers of k. Roofline: the multiply-adds of the vector units; a tile of 12 by 32 loads 14 times for 24 of them.

use super::cut::{Cut, PANEL, Part, rows_of_tile, share_out};
use super::float_set::FloatSet;
use super::lanes::{FloatJob, Lanes, Sixteen, WIDTH};
use super::weights::{BLOCK, Rows, VECTORS};

/// Blocks of a row in a panel, which is then half a mebibyte.
const DEPTH: usize = 32;

/// The numbers of 32 columns at one place of k.
type Line = [Sixteen; PANEL / WIDTH];

/// Computes `y[m, n] = x[m, k] * weight[n, k]ᵀ`.
pub fn run<R: Rows>(set: FloatSet, cut: Cut, rows: &R, x: &[f32], k: usize, y: &mut [f32], n: usize) {
    share_out(cut.parts(y, n), |part| set.run(Tiles { rows, x, k, part }));
}

struct Tiles<'a, R> {
    rows: &'a R,
    x: &'a [f32],
    k: usize,
    part: Part<'a>,
}

impl<R: Rows> FloatJob for Tiles<'_, R> {
    #[inline(always)]
    fn on<L: Lanes>(mut self, lanes: L) {
        let columns = self.part.outputs.first().map_or(0, |row| row.len());
        let mut panel = vec![[Sixteen([0.0; WIDTH]); PANEL / WIDTH]; self.k.min(DEPTH * BLOCK)];
        for column in (0..columns).step_by(PANEL) {
            let width = PANEL.min(columns - column);
            for start in (0..self.k).step_by(DEPTH * BLOCK) {
                let depth = (self.k - start).min(DEPTH * BLOCK);
                self.unpack(lanes, column, width, start, &mut panel[..depth]);
                let mut row = 0;
                while row < self.part.outputs.len() {
                    let panel = &panel[..depth];
                    row += match rows_of_tile(self.part.outputs.len() - row, L::TILE.0) {
                        12 => self.rows_of_tiles::<L, 12>(lanes, row, column, start, panel),
                        6 => self.rows_of_tiles::<L, 6>(lanes, row, column, start, panel),
                        4 => self.rows_of_tiles::<L, 4>(lanes, row, column, start, panel),
                        2 => self.rows_of_tiles::<L, 2>(lanes, row, column, start, panel),
                        _ => self.rows_of_tiles::<L, 1>(lanes, row, column, start, panel),
                    };
                }
            }
        }
    }
}

impl<R: Rows> Tiles<'_, R> {
    /// Fills a panel with some numbers of some rows of the weight; columns beyond its end keep what was there.
    #[inline(always)]
    fn unpack<L: Lanes>(&self, lanes: L, column: usize, width: usize, start: usize, panel: &mut [Line]) {
        for at in 0..width {
            let row = self.part.column + column + at;
            let (vector, lane) = (at / WIDTH, at % WIDTH);
            for (block, lines) in panel.chunks_mut(BLOCK).enumerate() {
                let numbers = self.rows.block(lanes, row, start / BLOCK + block);
                for (i, &sixteen) in numbers.iter().enumerate() {
                    for (j, number) in lanes.store(sixteen).into_iter().enumerate() {
                        let place = if R::STRIDED { j * VECTORS + i } else { i * WIDTH + j };
                        if let Some(line) = lines.get_mut(place) {
                            line[vector].0[lane] = number;
                        }
                    }
                }
            }
        }
    }

    /// All tiles of `M` rows in a panel; answers how many rows there were.
    #[inline(always)]
    fn rows_of_tiles<L: Lanes, const M: usize>(
        &mut self,
        lanes: L,
        row: usize,
        column: usize,
        start: usize,
        panel: &[Line],
    ) -> usize {
        if L::TILE.1 == 2 {
            self.tile::<L, M, 2>(lanes, row, column, start, panel, 0);
        } else {
            for vector in 0..PANEL / WIDTH {
                self.tile::<L, M, 1>(lanes, row, column, start, panel, vector);
            }
        }
        M
    }

    #[inline(always)]
    fn tile<L: Lanes, const M: usize, const V: usize>(
        &mut self,
        lanes: L,
        row: usize,
        column: usize,
        start: usize,
        panel: &[Line],
        vector: usize,
    ) {
        let mut x = [&self.x[..0]; M];
        for (m, x) in x.iter_mut().enumerate() {
            *x = &self.x[(self.part.row + row + m) * self.k + start..][..panel.len()];
        }
        let mut sums = [[lanes.splat(0.0); V]; M];
        for (at, line) in panel.iter().enumerate() {
            let mut weights = [lanes.splat(0.0); V];
            for (v, weights) in weights.iter_mut().enumerate() {
                *weights = lanes.load(&line[vector + v].0);
            }
            for (sums, x) in sums.iter_mut().zip(&x) {
                let x = lanes.splat(x[at]);
                for (sum, &weights) in sums.iter_mut().zip(&weights) {
                    *sum = lanes.multiply_add(x, weights, *sum);
                }
            }
        }
        for (m, sums) in sums.iter().enumerate() {
            let output = &mut self.part.outputs[row + m];
            for (v, &sum) in sums.iter().enumerate() {
                let first = column + (vector + v) * WIDTH;
                for (at, sum) in lanes.store(sum).into_iter().enumerate() {
                    let Some(y) = output.get_mut(first + at) else { break };
                    let scaled = self.rows.scale(self.part.column + first + at) * sum;
                    *y = if start == 0 { scaled } else { *y + scaled };
                }
            }
        }
    }
}
