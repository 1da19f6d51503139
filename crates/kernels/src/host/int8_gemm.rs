//! int8 GEMM with an int8 weight; exact until the scales are applied.
//!
//! Data flow: the weight is packed once into panels of 32 rows. A panel row holds one word (four values along k) of
//! each weight row; 128 is added to each byte if the instructions multiply unsigned with signed bytes. Each thread
//! computes some columns. It processes 96 rows of x at a time, which stay in the L2 cache, and for each panel the tiles
//! of these rows. Accumulators of a tile stay in registers. Finally the offset times the row's sum of x is subtracted,
//! and the result is multiplied by the row and column scales.
//!
//! Traffic: the packed weight once per 96 rows, m * k bytes of x once per part of columns, y once. Roofline: with many
//! rows the int8 throughput, with VNNI four times the multiply-adds of f32; with few rows memory bandwidth for the
//! weight.

use super::float_vec::FloatVec;
use super::int8_isa::Int8Isa;
use super::int8_simd::{Int8Simd, Int8Task};
use super::partition::{OutputPart, OutputPartition, PANEL, run_parallel, tile_rows};
use rayon::prelude::*;

/// Rows of x that stay in the L2 cache: eight AVX-512 tiles.
const BLOCK_ROWS: usize = 96;

/// Sixteen words, aligned to a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct AlignedWords([u32; 16]);

/// Word of each of 32 weight rows at one position along k.
type Int8PanelRow = [AlignedWords; PANEL / 16];

/// GEMM of int8 rows with a weight of `n` int8 rows, by the fastest instructions of this processor.
///
/// ```
/// use calorimeter_kernels::host::{FloatVec, Int8Gemm};
///
/// // A row of values 1, 2, 3, 4 and one of 0, 0, 0, -1, times a row of 1, 1, 1, 10 whose scale is one half.
/// let gemm = Int8Gemm::new(&[0x04030201, 0xff000000], FloatVec::F32(vec![1.0, 2.0]));
/// let mut y = [0.0; 2];
/// gemm.run(&[0x0a010101], &[0.5], &mut y);
/// assert_eq!(y, [23.0, -10.0]);
/// ```
#[derive(Debug, Clone)]
pub struct Int8Gemm {
    /// Panels, one after the other.
    panels: Vec<Int8PanelRow>,
    /// Rows that do not fill a panel, interleaved word by word.
    remainder: Vec<u32>,
    scales: FloatVec,
    /// Words per row.
    words: usize,
    set: Int8Isa,
}

impl Int8Gemm {
    /// Maximum k, a multiple of 32: larger sums might overflow 32 bits.
    pub const MAX_K: usize = (1 << 17) - 32;

    /// Packs the int8 values of a weight, four per word with the first in the lowest bits, and a scale per row.
    ///
    /// # Panics
    /// If the words do not form equally many whole rows as there are scales, or if a row exceeds [`Self::MAX_K`] values.
    pub fn new(codes: &[u32], scales: FloatVec) -> Self {
        Self::with_isa(codes, scales, Int8Isa::fastest())
    }

    fn with_isa(codes: &[u32], scales: FloatVec, set: Int8Isa) -> Self {
        let n = scales.len();
        assert!(n > 0 && !codes.is_empty() && codes.len().is_multiple_of(n), "{} words in {n} rows", codes.len());
        let words = codes.len() / n;
        assert!(4 * words <= Self::MAX_K, "rows of {words} words overflow 32-bit accumulators");
        let whole = n / PANEL * PANEL;
        let (panelled, left) = codes.split_at(whole * words);
        // Adding 128 modulo 256 flips the highest bit.
        let added = u32::from_ne_bytes([set.weight_offset(); 4]);
        let mut panels = vec![[AlignedWords([0; 16]); PANEL / 16]; whole / PANEL * words];
        panels.par_chunks_mut(words).zip(panelled.par_chunks(PANEL * words)).for_each(|(panel, rows)| {
            for (row, codes) in rows.chunks(words).enumerate() {
                for (line, word) in panel.iter_mut().zip(codes) {
                    line[row / 16].0[row % 16] = word ^ added;
                }
            }
        });
        let rest = (0..words).flat_map(|word| (0..n - whole).map(move |row| left[row * words + word] ^ added));
        Self { panels, remainder: rest.collect(), scales, words, set }
    }

    /// Computes `y[m, n]` synchronously from the int8 values and scales of `m` rows. Rows have the word count of the
    /// weight's rows, padded with zeros.
    ///
    /// # Panics
    /// If `x` or `y` does not have the size that follows from the scales.
    pub fn run(&self, x: &[u32], scales: &[f32], y: &mut [f32]) {
        let (m, n) = (scales.len(), self.scales.len());
        assert!(x.len() == m * self.words && y.len() == m * n, "{} words, {} outputs, {m} x {n}", x.len(), y.len());
        let mut sums = vec![0; m];
        let rows = x.chunks(BLOCK_ROWS * self.words);
        run_parallel(sums.chunks_mut(BLOCK_ROWS).zip(rows).collect(), |(sums, rows)| {
            sums.iter_mut().zip(rows.chunks(self.words)).for_each(|(sum, row)| *sum = sum_of_values(row));
        });
        let (x, sums) = (x, &sums[..]);
        run_parallel(self.partition(m).parts(y, n), |part| {
            self.set.run(Int8TileTask { product: self, x, sums, scales, part })
        });
    }

    fn partition(&self, m: usize) -> OutputPartition {
        OutputPartition::new(m, self.scales.len(), BLOCK_ROWS)
    }

    /// Bytes of the packed weight and its scales, in whole words.
    pub fn weight_bytes(&self) -> usize {
        self.panels.len() * size_of::<Int8PanelRow>() + 4 * self.remainder.len() + self.scales.bytes_in_words()
    }

    /// Description of the kernel for `m` rows.
    pub fn kernel(&self, m: usize) -> String {
        let (rows, columns) = self.set.tile();
        let OutputPartition { rows: down, columns: across } = self.partition(m);
        let (set, threads) = (self.set.name(), rayon::current_num_threads());
        format!("int8 GEMM by {set}, tiles of {rows}x{columns}, parts of {down}x{across} on {threads} threads")
    }

    /// Returns the incomplete last panel, padded with zeros.
    fn remainder_panel(&self) -> Vec<Int8PanelRow> {
        let width = self.remainder.len() / self.words;
        let mut panel = vec![[AlignedWords([0; 16]); PANEL / 16]; self.words];
        for (line, words) in panel.iter_mut().zip(self.remainder.chunks(width)) {
            for (row, &word) in words.iter().enumerate() {
                line[row / 16].0[row % 16] = word;
            }
        }
        panel
    }
}

fn sum_of_values(words: &[u32]) -> i32 {
    let sum = |word: i32| (word << 24 >> 24) + (word << 16 >> 24) + (word << 8 >> 24) + (word >> 24);
    words.iter().map(|&word| sum(word as i32)).sum()
}

struct Int8TileTask<'a> {
    product: &'a Int8Gemm,
    x: &'a [u32],
    /// Sum of the values of each row of x.
    sums: &'a [i32],
    scales: &'a [f32],
    part: OutputPart<'a>,
}

impl Int8Task for Int8TileTask<'_> {
    #[inline(always)]
    fn execute<B: Int8Simd>(mut self, bytes: B) {
        let (rows, words) = (self.part.outputs.len(), self.product.words);
        let columns = self.part.outputs.first().map_or(0, |row| row.len());
        let whole = self.product.panels.len() / words * PANEL;
        let last = if self.part.column + columns > whole { self.product.remainder_panel() } else { Vec::new() };
        for block in (0..rows).step_by(BLOCK_ROWS) {
            let end = (block + BLOCK_ROWS).min(rows);
            for column in (0..columns).step_by(PANEL) {
                let first = self.part.column + column;
                let panels = &self.product.panels;
                let panel = if first < whole { &panels[first / PANEL * words..][..words] } else { &last[..] };
                let mut row = block;
                while row < end {
                    row += match tile_rows(end - row, B::TILE.0) {
                        12 => self.row_of_tiles::<B, 12>(bytes, row, column, panel),
                        6 => self.row_of_tiles::<B, 6>(bytes, row, column, panel),
                        4 => self.row_of_tiles::<B, 4>(bytes, row, column, panel),
                        2 => self.row_of_tiles::<B, 2>(bytes, row, column, panel),
                        _ => self.row_of_tiles::<B, 1>(bytes, row, column, panel),
                    };
                }
            }
        }
    }
}

impl Int8TileTask<'_> {
    /// Computes all tiles of `M` rows in a panel; returns `M`.
    #[inline(always)]
    fn row_of_tiles<B: Int8Simd, const M: usize>(
        &mut self,
        bytes: B,
        row: usize,
        column: usize,
        panel: &[Int8PanelRow],
    ) -> usize {
        if B::TILE.1 == 2 {
            self.tile::<B, M, 2>(bytes, row, column, panel, 0);
        } else {
            for vector in 0..PANEL / 16 {
                self.tile::<B, M, 1>(bytes, row, column, panel, vector);
            }
        }
        M
    }

    #[inline(always)]
    fn tile<B: Int8Simd, const M: usize, const V: usize>(
        &mut self,
        bytes: B,
        row: usize,
        column: usize,
        panel: &[Int8PanelRow],
        vector: usize,
    ) {
        let mut x = [&self.x[..0]; M];
        for (m, x) in x.iter_mut().enumerate() {
            *x = &self.x[(self.part.row + row + m) * panel.len()..][..panel.len()];
        }
        let mut sums = [[bytes.zero(); V]; M];
        for (at, line) in panel.iter().enumerate() {
            let mut words = [bytes.words(&line[vector].0); V];
            for (v, words) in words.iter_mut().enumerate().skip(1) {
                *words = bytes.words(&line[vector + v].0);
            }
            for (sums, x) in sums.iter_mut().zip(&x) {
                for (sum, &words) in sums.iter_mut().zip(&words) {
                    *sum = bytes.dot_accumulate(*sum, words, x[at]);
                }
            }
        }
        for (m, sums) in sums.iter().enumerate() {
            let at = self.part.row + row + m;
            let (offset, scale) = (self.sums[at].wrapping_mul(i32::from(B::WEIGHT_OFFSET)), self.scales[at]);
            let output = &mut self.part.outputs[row + m];
            for (v, &sum) in sums.iter().enumerate() {
                let first = column + (vector + v) * 16;
                for (lane, sum) in bytes.store(sum).into_iter().enumerate() {
                    let Some(y) = output.get_mut(first + lane) else { break };
                    let of_column = self.product.scales.get(self.part.column + first + lane);
                    *y = sum.wrapping_sub(offset) as f32 * scale * of_column;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of pseudo-random or extreme int8 values.
    fn words(rows: usize, k: usize, seed: u32, extreme: bool) -> Vec<u32> {
        let code = |i: usize| {
            let mixed = (i as u32 ^ seed).wrapping_mul(0x9E37_79B9).rotate_left(11).wrapping_mul(0x85EB_CA6B) >> 24;
            if extreme { [0x80, 0x7F][(mixed & 1) as usize] } else { mixed }
        };
        let words = k.div_ceil(32) * 8;
        let word =
            |at: usize| (0..4).filter(|i| at % words * 4 + i < k).map(|i| code(4 * at + i) << (8 * i)).sum::<u32>();
        (0..rows * words).map(word).collect()
    }

    fn codes(words: &[u32]) -> Vec<i64> {
        words.iter().flat_map(|word| word.to_le_bytes()).map(|code| i64::from(code as i8)).collect()
    }

    #[test]
    fn every_isa_matches_exact_integer_results() {
        let odd = [1, 3, 17, 127, 129];
        let mut sizes: Vec<[usize; 3]> =
            odd.iter().flat_map(|&m| odd.iter().flat_map(move |&k| odd.map(|n| [m, k, n]))).collect();
        sizes.extend([[1, 1000, 1000], [5, 1000, 129], [129, 1000, 17], [17, 33, 1000], [2, Int8Gemm::MAX_K, 33]]);
        for [m, k, n] in sizes {
            for extreme in [false, true] {
                let (x, weight) = (words(m, k, 1, extreme), words(n, k, 2, extreme));
                let (scales, of_columns): (Vec<f32>, Vec<f32>) =
                    ((0..m).map(|i| 1.0 + i as f32 / 8.0).collect(), (0..n).map(|i| 0.5 + i as f32 / 16.0).collect());
                let per_row = x.len() / m * 4;
                let (exact_x, exact_weight) = (codes(&x), codes(&weight));
                for set in Int8Isa::available() {
                    let product = Int8Gemm::with_isa(&weight, FloatVec::F32(of_columns.clone()), set);
                    let mut y = vec![f32::NAN; m * n];
                    product.run(&x, &scales, &mut y);
                    for (i, &y) in y.iter().enumerate() {
                        let (row, column) = (i / n, i % n);
                        let (x, w) =
                            (&exact_x[row * per_row..][..per_row], &exact_weight[column * per_row..][..per_row]);
                        let sum: i64 = x.iter().zip(w).map(|(x, w)| x * w).sum();
                        let exact = sum as f32 * scales[row] * of_columns[column];
                        assert_eq!(
                            y.to_bits(),
                            exact.to_bits(),
                            "{m} {k} {n} {}: {y} instead of {exact}",
                            product.kernel(m)
                        );
                    }
                    assert_eq!(product.weight_bytes(), 4 * weight.len() + 4 * n);
                }
            }
        }
    }
}
