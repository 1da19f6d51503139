//! GEMM of many rows with a stored weight, in register tiles.
//!
//! Data flow: each thread computes some columns. It unpacks 32 rows of the weight, up to 4096 elements of each,
//! transposed to f32 into a panel that stays in the L2 cache. Then it multiplies the rows of x tile by tile: for each
//! position along k, an element of each row times a panel row is added to the accumulators.
//!
//! Traffic: the stored weight once per part of rows, x once per 32 columns from the last-level cache, y once per 4096
//! elements of k. Roofline: FMA throughput of the vector units; a tile of 12 by 32 needs 14 loads per 24 FMAs.

use super::float_isa::FloatIsa;
use super::float_simd::{AlignedFloats, FloatSimd, FloatTask, WIDTH};
use super::partition::{OutputPart, OutputPartition, PANEL, run_parallel, tile_rows};
use super::weights::{BLOCK, VECTORS, WeightRow, WeightRows};

/// Blocks of k per panel, whose size is then 512 KiB.
const PANEL_BLOCKS: usize = 32;

/// Elements of 32 columns at one position along k.
type FloatPanelRow = [AlignedFloats; PANEL / WIDTH];

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
    run_parallel(partition.parts(y, n), |part| set.run(FloatTileTask { rows, x, k, part }));
}

struct FloatTileTask<'a, R> {
    rows: &'a R,
    x: &'a [f32],
    k: usize,
    part: OutputPart<'a>,
}

impl<R: WeightRows> FloatTask for FloatTileTask<'_, R> {
    #[inline(always)]
    fn execute<L: FloatSimd>(mut self, lanes: L) {
        let columns = self.part.outputs.first().map_or(0, |row| row.len());
        let mut panel = vec![[AlignedFloats([0.0; WIDTH]); PANEL / WIDTH]; self.k.min(PANEL_BLOCKS * BLOCK)];
        for column in (0..columns).step_by(PANEL) {
            let width = PANEL.min(columns - column);
            for start in (0..self.k).step_by(PANEL_BLOCKS * BLOCK) {
                let depth = (self.k - start).min(PANEL_BLOCKS * BLOCK);
                self.unpack(lanes, column, width, start, &mut panel[..depth]);
                let mut row = 0;
                while row < self.part.outputs.len() {
                    let panel = &panel[..depth];
                    row += match tile_rows(self.part.outputs.len() - row, L::TILE.0) {
                        12 => self.row_of_tiles::<L, 12>(lanes, row, column, start, panel),
                        6 => self.row_of_tiles::<L, 6>(lanes, row, column, start, panel),
                        4 => self.row_of_tiles::<L, 4>(lanes, row, column, start, panel),
                        2 => self.row_of_tiles::<L, 2>(lanes, row, column, start, panel),
                        _ => self.row_of_tiles::<L, 1>(lanes, row, column, start, panel),
                    };
                }
            }
        }
    }
}

impl<R: WeightRows> FloatTileTask<'_, R> {
    /// Unpacks part of some weight rows into a panel; columns beyond the end of the weight keep stale values.
    #[inline(always)]
    fn unpack<L: FloatSimd>(&self, lanes: L, column: usize, width: usize, start: usize, panel: &mut [FloatPanelRow]) {
        for at in 0..width {
            let (vector, lane) = (at / WIDTH, at % WIDTH);
            let row = self.rows.row(self.part.column + column + at);
            for (block, lines) in panel.chunks_mut(BLOCK).enumerate() {
                let numbers = row.block(lanes, start / BLOCK + block);
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

    /// Computes all tiles of `M` rows in a panel; returns `M`.
    #[inline(always)]
    fn row_of_tiles<L: FloatSimd, const M: usize>(
        &mut self,
        lanes: L,
        row: usize,
        column: usize,
        start: usize,
        panel: &[FloatPanelRow],
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
    fn tile<L: FloatSimd, const M: usize, const V: usize>(
        &mut self,
        lanes: L,
        row: usize,
        column: usize,
        start: usize,
        panel: &[FloatPanelRow],
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
