//! Rows of 8-bit codes times a weight of 8-bit codes, exact until the scales are applied.
//!
//! Data flow: the weight is packed once: of 32 of its rows the words of four codes at one place of k lie side by side, and
//! each code has 128 added if the instructions multiply unsigned bytes with signed ones. Each thread takes some columns;
//! it goes through 96 rows of x at a time, which stay in its second cache, and for each panel of 32 columns through the tiles
//! of these rows. A tile's sums stay in registers; at the end what was added times the sum of the row's codes is taken away, and what
//! is left is multiplied with the row's scale and the column's.
//!
//! Traffic: the packed weight once for every 96 rows, m * k of codes once for each part of columns, y once. Roofline: with
//! many rows the products of bytes, four times the multiply-adds of f32 where there is VNNI; with few the memory's, the
//! bytes of the weight over its bandwidth.

use super::byte_set::ByteSet;
use super::bytes::{ByteJob, Bytes};
use super::cut::{Cut, PANEL, Part, rows_of_tile, share_out};
use super::numbers::Numbers;
use rayon::prelude::*;

/// Rows of x that stay in the second cache: eight tiles of AVX-512.
const BLOCK_ROWS: usize = 96;

/// Sixteen words where a vector is read in one piece.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Words([u32; 16]);

/// The words of 32 rows at one place of k.
type Line = [Words; PANEL / 16];

/// The product of rows of 8-bit codes with a weight of `n` rows of 8-bit codes, by the best instructions of this processor.
///
/// ```
/// use calorimeter_kernels::host::{Int8Product, Numbers};
///
/// // A row of codes 1, 2, 3, 4 and one of 0, 0, 0, -1, times a row of 1, 1, 1, 10 whose scale is one half.
/// let product = Int8Product::new(&[0x04030201, 0xff000000], Numbers::F32(vec![1.0, 2.0]));
/// let mut y = [0.0; 2];
/// product.run(&[0x0a010101], &[0.5], &mut y);
/// assert_eq!(y, [23.0, -10.0]);
/// ```
#[derive(Debug, Clone)]
pub struct Int8Product {
    /// Panel by panel.
    panels: Vec<Line>,
    /// The rows that do not fill a panel, word by word side by side.
    rest: Vec<u32>,
    scales: Numbers,
    /// Words of a row.
    words: usize,
    set: ByteSet,
}

impl Int8Product {
    /// The most codes in a row, which are stored in blocks of 32: sums of more may not fit into 32 bits.
    pub const MOST: usize = (1 << 17) - 32;

    /// Packs the signed codes of a weight, four in a word with the first in the lowest bits, and a scale for each row.
    ///
    /// # Panics
    /// If there are no rows of as many whole words, or if they have more than [`Self::MOST`] codes.
    pub fn new(codes: &[u32], scales: Numbers) -> Self {
        Self::by(codes, scales, ByteSet::fastest())
    }

    fn by(codes: &[u32], scales: Numbers, set: ByteSet) -> Self {
        let n = scales.len();
        assert!(n > 0 && !codes.is_empty() && codes.len().is_multiple_of(n), "{} words in {n} rows", codes.len());
        let words = codes.len() / n;
        assert!(4 * words <= Self::MOST, "rows of {words} words: their sums do not fit into 32 bits");
        let whole = n / PANEL * PANEL;
        let (panelled, left) = codes.split_at(whole * words);
        // Modulo 256, adding 128 is turning a bit round.
        let added = u32::from_ne_bytes([set.added(); 4]);
        let mut panels = vec![[Words([0; 16]); PANEL / 16]; whole / PANEL * words];
        panels.par_chunks_mut(words).zip(panelled.par_chunks(PANEL * words)).for_each(|(panel, rows)| {
            for (row, codes) in rows.chunks(words).enumerate() {
                for (line, word) in panel.iter_mut().zip(codes) {
                    line[row / 16].0[row % 16] = word ^ added;
                }
            }
        });
        let rest = (0..words).flat_map(|word| (0..n - whole).map(move |row| left[row * words + word] ^ added));
        Self { panels, rest: rest.collect(), scales, words, set }
    }

    /// Computes `y[m, n]` from the codes and scales of `m` rows, all of it before it returns: rows are as many words as the
    /// weight's, what fills them up is zero.
    ///
    /// # Panics
    /// If there are not as many codes and outputs as the scales ask for.
    pub fn run(&self, x: &[u32], scales: &[f32], y: &mut [f32]) {
        let (m, n) = (scales.len(), self.scales.len());
        assert!(x.len() == m * self.words && y.len() == m * n, "{} words, {} outputs, {m} x {n}", x.len(), y.len());
        let mut sums = vec![0; m];
        let rows = x.chunks(BLOCK_ROWS * self.words);
        share_out(sums.chunks_mut(BLOCK_ROWS).zip(rows).collect(), |(sums, rows)| {
            sums.iter_mut().zip(rows.chunks(self.words)).for_each(|(sum, row)| *sum = sum_of_codes(row));
        });
        let (x, sums) = (x, &sums[..]);
        share_out(self.cut(m).parts(y, n), |part| self.set.run(Tiles { product: self, x, sums, scales, part }));
    }

    fn cut(&self, m: usize) -> Cut {
        Cut::new(m, self.scales.len(), BLOCK_ROWS)
    }

    /// Bytes of the packed weight and its scales, in whole words.
    pub fn weight_bytes(&self) -> usize {
        self.panels.len() * size_of::<Line>() + 4 * self.rest.len() + self.scales.bytes_in_words()
    }

    /// The kernel for so many rows, and how it is cut.
    pub fn kernel(&self, m: usize) -> String {
        let (rows, columns) = self.set.tile();
        let Cut { rows: down, columns: across } = self.cut(m);
        let (set, threads) = (self.set.name(), rayon::current_num_threads());
        format!("int8 products by {set}, tiles of {rows}x{columns}, parts of {down}x{across} on {threads} threads")
    }

    /// The panel of the rows that fill none, zeros beside them.
    fn rest_as_panel(&self) -> Vec<Line> {
        let width = self.rest.len() / self.words;
        let mut panel = vec![[Words([0; 16]); PANEL / 16]; self.words];
        for (line, words) in panel.iter_mut().zip(self.rest.chunks(width)) {
            for (row, &word) in words.iter().enumerate() {
                line[row / 16].0[row % 16] = word;
            }
        }
        panel
    }
}

fn sum_of_codes(words: &[u32]) -> i32 {
    let sum = |word: i32| (word << 24 >> 24) + (word << 16 >> 24) + (word << 8 >> 24) + (word >> 24);
    words.iter().map(|&word| sum(word as i32)).sum()
}

struct Tiles<'a> {
    product: &'a Int8Product,
    x: &'a [u32],
    /// Of each row's codes.
    sums: &'a [i32],
    scales: &'a [f32],
    part: Part<'a>,
}

impl ByteJob for Tiles<'_> {
    #[inline(always)]
    fn on<B: Bytes>(mut self, bytes: B) {
        let (rows, words) = (self.part.outputs.len(), self.product.words);
        let columns = self.part.outputs.first().map_or(0, |row| row.len());
        let whole = self.product.panels.len() / words * PANEL;
        let last = if self.part.column + columns > whole { self.product.rest_as_panel() } else { Vec::new() };
        for block in (0..rows).step_by(BLOCK_ROWS) {
            let end = (block + BLOCK_ROWS).min(rows);
            for column in (0..columns).step_by(PANEL) {
                let first = self.part.column + column;
                let panels = &self.product.panels;
                let panel = if first < whole { &panels[first / PANEL * words..][..words] } else { &last[..] };
                let mut row = block;
                while row < end {
                    row += match rows_of_tile(end - row, B::TILE.0) {
                        12 => self.rows_of_tiles::<B, 12>(bytes, row, column, panel),
                        6 => self.rows_of_tiles::<B, 6>(bytes, row, column, panel),
                        4 => self.rows_of_tiles::<B, 4>(bytes, row, column, panel),
                        2 => self.rows_of_tiles::<B, 2>(bytes, row, column, panel),
                        _ => self.rows_of_tiles::<B, 1>(bytes, row, column, panel),
                    };
                }
            }
        }
    }
}

impl Tiles<'_> {
    /// All tiles of `M` rows in a panel; answers how many rows there were.
    #[inline(always)]
    fn rows_of_tiles<B: Bytes, const M: usize>(
        &mut self,
        bytes: B,
        row: usize,
        column: usize,
        panel: &[Line],
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
    fn tile<B: Bytes, const M: usize, const V: usize>(
        &mut self,
        bytes: B,
        row: usize,
        column: usize,
        panel: &[Line],
        vector: usize,
    ) {
        let mut x = [&self.x[..0]; M];
        for (m, x) in x.iter_mut().enumerate() {
            *x = &self.x[(self.part.row + row + m) * panel.len()..][..panel.len()];
        }
        let mut sums = [[bytes.nothing(); V]; M];
        for (at, line) in panel.iter().enumerate() {
            let mut words = [bytes.words(&line[vector].0); V];
            for (v, words) in words.iter_mut().enumerate().skip(1) {
                *words = bytes.words(&line[vector + v].0);
            }
            for (sums, x) in sums.iter_mut().zip(&x) {
                for (sum, &words) in sums.iter_mut().zip(&words) {
                    *sum = bytes.add_products(*sum, words, x[at]);
                }
            }
        }
        for (m, sums) in sums.iter().enumerate() {
            let at = self.part.row + row + m;
            let (offset, scale) = (self.sums[at].wrapping_mul(i32::from(B::ADDED)), self.scales[at]);
            let output = &mut self.part.outputs[row + m];
            for (v, &sum) in sums.iter().enumerate() {
                let first = column + (vector + v) * 16;
                for (lane, sum) in bytes.store(sum).into_iter().enumerate() {
                    let Some(y) = output.get_mut(first + lane) else { break };
                    let of_column = self.product.scales.at(self.part.column + first + lane);
                    *y = sum.wrapping_sub(offset) as f32 * scale * of_column;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of codes that look like chance, or that are as large as they can be.
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
    fn every_set_gives_the_integers_of_long_multiplication_on_ragged_sizes() {
        let odd = [1, 3, 17, 127, 129];
        let mut sizes: Vec<[usize; 3]> =
            odd.iter().flat_map(|&m| odd.iter().flat_map(move |&k| odd.map(|n| [m, k, n]))).collect();
        sizes.extend([[1, 1000, 1000], [5, 1000, 129], [129, 1000, 17], [17, 33, 1000], [2, Int8Product::MOST, 33]]);
        for [m, k, n] in sizes {
            for extreme in [false, true] {
                let (x, weight) = (words(m, k, 1, extreme), words(n, k, 2, extreme));
                let (scales, of_columns): (Vec<f32>, Vec<f32>) =
                    ((0..m).map(|i| 1.0 + i as f32 / 8.0).collect(), (0..n).map(|i| 0.5 + i as f32 / 16.0).collect());
                let per_row = x.len() / m * 4;
                let (exact_x, exact_weight) = (codes(&x), codes(&weight));
                for set in ByteSet::here() {
                    let product = Int8Product::by(&weight, Numbers::F32(of_columns.clone()), set);
                    let mut y = vec![f32::NAN; m * n];
                    product.run(&x, &scales, &mut y);
                    for (i, &y) in y.iter().enumerate() {
                        let (row, column) = (i / n, i % n);
                        let (x, w) =
                            (&exact_x[row * per_row..][..per_row], &exact_weight[column * per_row..][..per_row]);
                        let sum: i64 = x.iter().zip(w).map(|(x, w)| x * w).sum();
                        let exact = sum as f32 * scales[row] * of_columns[column];
                        assert_eq!(y.to_bits(), exact.to_bits(), "{m} {k} {n} {}: {y} for {exact}", product.kernel(m));
                    }
                    assert_eq!(product.weight_bytes(), 4 * weight.len() + 4 * n);
                }
            }
        }
    }
}
