//! Deterministic scale factors per row, column and block, computed from (seed, position).
//!
//! A scale read from the wrong group then fails the check.

use crate::stream::mix;
#[cfg(feature = "cuda")]
use calorimeter_kernels::native::PlaceGains;
use rayon::prelude::*;
use std::f64::consts::LN_2;
use std::sync::{LazyLock, OnceLock};

/// Distribution of the scale factors of a tensor. Each factor is log-uniform around one.
///
/// Exponents are quantized to steps of 1/256 octave, so that every machine and device computes identical bits.
#[derive(Debug, Clone, Copy)]
pub struct Gains {
    /// Range of the row factors in octaves.
    pub rows: u32,
    /// Range of the column factors in octaves; a column has one factor in all rows.
    pub columns: u32,
    /// Block lengths within a row, ascending. Each block has a factor of one octave; blocks are nested as in recipes.
    pub runs: &'static [usize],
    /// True if blocks are as high as they are long, for operands whose blocks may run along either dimension.
    pub square: bool,
    /// True if the longest block has separate factors for positive and negative values, so that its midpoint is not
    /// zero.
    pub skewed: bool,
    /// Factor of the last columns, which makes a matmul that skips the end of k fail.
    pub tail: f32,
}

/// Elements of a row that one task scales.
const PIECE: usize = 1 << 14;

/// Number of columns with the tail factor.
const TAIL: usize = 8;

/// Scale factors of one seed for rows of `cols` elements.
#[derive(Debug)]
pub struct Louder {
    gains: Gains,
    seed: u64,
    cols: usize,
    /// Factor that preserves the expected mean square. Attention scores must not grow.
    evened: f32,
    /// Factors of all columns, computed once if several rows need them.
    columns: OnceLock<Vec<f32>>,
}

impl Louder {
    pub fn new(gains: Gains, seed: u64, cols: usize) -> Self {
        // Mean square of a log-uniform factor over this range.
        let mean = |octaves: u32| match octaves {
            0 => 1.0,
            _ => (2f64.powi(octaves as i32) - 0.5f64.powi(octaves as i32)) / (2.0 * f64::from(octaves) * LN_2),
        };
        let runs = mean(1).powi(gains.runs.len() as i32);
        let louder = TAIL as f64 * (f64::from(gains.tail).powi(2) - 1.0);
        let tail = if cols > TAIL { 1.0 + louder / cols as f64 } else { 1.0 };
        let evened = (1.0 / (mean(gains.rows) * mean(gains.columns) * runs * tail).sqrt()) as f32;
        Self { gains, seed, cols, evened, columns: OnceLock::new() }
    }

    /// Returns a row-major matrix multiplied by the factors.
    pub fn of(&self, values: &[f32]) -> Vec<f32> {
        let mut louder = values.to_vec();
        self.share_columns(values.len() / self.cols.max(1));
        louder.par_chunks_mut(self.cols.max(1)).enumerate().for_each(|(row, values)| {
            let pieces = values.par_chunks_mut(PIECE).enumerate();
            pieces.for_each(|(piece, values)| self.apply(row, piece * PIECE, values));
        });
        louder
    }

    /// Parameters for the device implementation.
    #[cfg(feature = "cuda")]
    pub fn gains(&self) -> PlaceGains<'static> {
        let Self { gains: Gains { rows, columns, runs, square, skewed, tail }, seed, evened, .. } = *self;
        PlaceGains { seed, rows, columns, runs, square, skewed, tail: (tail, TAIL), evened }
    }

    /// Computes the column factors once if there is more than one row.
    pub fn share_columns(&self, rows: usize) {
        if rows > 1 {
            self.columns.get_or_init(|| (0..self.cols).into_par_iter().map(|col| self.of_column(col)).collect());
        }
    }

    /// Multiplies part of a row, starting at column `first`, by its factors.
    pub fn apply(&self, row: usize, first: usize, values: &mut [f32]) {
        match self.columns.get() {
            Some(columns) => {
                let columns = &columns[first..first + values.len()];
                values.iter_mut().zip(columns).for_each(|(value, column)| *value *= column);
            }
            None => values.iter_mut().zip(first..).for_each(|(value, col)| *value *= self.of_column(col)),
        }
        let run = self.gains.runs[0];
        let shared = self.draw(self.gains.rows, [1 + row, 0, 0]);
        let mut of_row = OfRow { louder: self, row, shared, drawn: Vec::new(), skew: 0 };
        // The first part may start inside a block.
        let (rest, whole) = values.split_at_mut((first.next_multiple_of(run) - first).min(values.len()));
        let runs = std::iter::once(rest).filter(|rest| !rest.is_empty()).chain(whole.chunks_mut(run));
        let mut col = first;
        for values in runs {
            let [positive, negative] = of_row.at(col);
            values.iter_mut().for_each(|value| *value *= if *value < 0.0 { negative } else { positive });
            col += values.len();
        }
    }

    fn of_column(&self, col: usize) -> f32 {
        let tail = if self.cols > TAIL && col + TAIL >= self.cols { self.gains.tail } else { 1.0 };
        gain(self.draw(self.gains.columns, [0, col, 0])) * tail * self.evened
    }

    /// Random exponent of a position, in steps, uniform within half of `octaves` on either side of zero.
    fn draw(&self, octaves: u32, place: [usize; 3]) -> i32 {
        let mixed = place.into_iter().fold(self.seed, |state, part| mix(state ^ mix(part as u64)));
        let steps = octaves * STEPS as u32;
        ((u64::from(steps) * (mixed >> 40)) >> 24) as i32 - (steps / 2) as i32
    }
}

/// Block factors of a row, visited in column order; exponents of long blocks are drawn once.
struct OfRow<'a> {
    louder: &'a Louder,
    row: usize,
    shared: i32,
    /// Exponent of the current block of each length; empty before the first column.
    drawn: Vec<i32>,
    skew: i32,
}

impl OfRow<'_> {
    /// Factors of positive and negative values in the shortest block that contains `col`.
    ///
    /// `col` is the first column visited or the start of a block.
    fn at(&mut self, col: usize) -> [f32; 2] {
        let Self { louder, row, shared, drawn, skew } = self;
        let Gains { runs, square, skewed, .. } = louder.gains;
        let begins = drawn.is_empty();
        drawn.resize(runs.len(), 0);
        for (drawn, &run) in drawn.iter_mut().zip(runs) {
            if begins || col.is_multiple_of(run) {
                let above = 1 + if square { *row / run } else { *row };
                *drawn = louder.draw(1, [above, col / run, run]);
            }
        }
        let last = runs.len() - 1;
        if skewed && (begins || col.is_multiple_of(runs[last])) {
            *skew = louder.draw(1, [1 + *row, col / runs[last], 1]) - drawn[last];
        }
        let steps = *shared + drawn.iter().sum::<i32>();
        [gain(steps), gain(steps + *skew)]
    }
}

const STEPS: usize = 256;

/// Powers of two of the steps within an octave.
pub static POWERS: LazyLock<[f32; STEPS]> =
    LazyLock::new(|| std::array::from_fn(|step| libm::exp2(step as f64 / STEPS as f64) as f32));

/// Two to the power of `steps` / 256.
fn gain(steps: i32) -> f32 {
    let octave = steps.div_euclid(STEPS as i32);
    POWERS[steps.rem_euclid(STEPS as i32) as usize] * f32::from_bits(((127 + octave) as u32) << 23)
}
