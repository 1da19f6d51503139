//! Deterministic scale factors per row, column and block, computed from (seed, position).
//!
//! A scale read from the wrong group then fails the check.

use crate::lazy_fill::fill_chunks;
use crate::stream::mix;
#[cfg(feature = "native")]
use calorimeter_kernels::native::MagnitudeGains;
use rayon::prelude::*;
use std::f64::consts::LN_2;
use std::sync::{LazyLock, OnceLock};

/// Distribution of the scale factors of a tensor. Each factor is log-uniform around one.
///
/// Exponents are quantized to steps of 1/256 octave, so that every machine and device computes identical bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MagnitudePattern {
    /// Range of the row factors in octaves.
    pub row_octaves: u32,
    /// Range of the column factors in octaves; a column has one factor in all rows.
    pub column_octaves: u32,
    /// Block lengths within a row, ascending. Each block has a factor of one octave; blocks are nested as in recipes.
    pub block_lengths: &'static [usize],
    /// True if blocks are as high as they are long, for operands whose blocks may run along either dimension.
    pub square_blocks: bool,
    /// True if the longest block has separate factors for positive and negative values, so that its midpoint is not
    /// zero.
    pub skewed: bool,
    /// Factor of the last columns, which makes a matmul that skips the end of k fail.
    pub tail_factor: f32,
}

/// Elements of a row that one task scales.
const CHUNK_LEN: usize = 1 << 14;

/// Number of columns with the tail factor.
const TAIL_COLUMNS: usize = 8;

/// Scale factors of one seed for rows of `cols` elements.
#[derive(Debug)]
pub(crate) struct ScaleFactors {
    pattern: MagnitudePattern,
    seed: u64,
    cols: usize,
    /// Factor that preserves the expected mean square. Attention scores must not grow.
    normalization: f32,
    /// Factors of all columns, computed once if several rows need them.
    column_factors: OnceLock<Vec<f32>>,
}

impl ScaleFactors {
    pub(crate) fn new(pattern: MagnitudePattern, seed: u64, cols: usize) -> Self {
        // Mean square of a log-uniform factor over this range.
        let mean = |octaves: u32| match octaves {
            0 => 1.0,
            _ => (2f64.powi(octaves as i32) - 0.5f64.powi(octaves as i32)) / (2.0 * f64::from(octaves) * LN_2),
        };
        let runs = mean(1).powi(pattern.block_lengths.len() as i32);
        let louder = TAIL_COLUMNS as f64 * (f64::from(pattern.tail_factor).powi(2) - 1.0);
        let tail = if cols > TAIL_COLUMNS { 1.0 + louder / cols as f64 } else { 1.0 };
        let normalization =
            (1.0 / (mean(pattern.row_octaves) * mean(pattern.column_octaves) * runs * tail).sqrt()) as f32;
        Self { pattern, seed, cols, normalization, column_factors: OnceLock::new() }
    }

    /// Returns a row-major matrix multiplied by the factors.
    pub(crate) fn scaled(&self, values: &[f32]) -> Vec<f32> {
        let mut louder = values.to_vec();
        self.cache_column_factors(values.len() / self.cols.max(1));
        louder.par_chunks_mut(self.cols.max(1)).enumerate().for_each(|(row, values)| {
            let pieces = values.par_chunks_mut(CHUNK_LEN).enumerate();
            pieces.for_each(|(piece, values)| self.apply(row, piece * CHUNK_LEN, values));
        });
        louder
    }

    /// Parameters for the device implementation.
    #[cfg(feature = "native")]
    pub(crate) fn device_parameters(&self) -> MagnitudeGains<'static> {
        let Self {
            pattern:
                MagnitudePattern {
                    row_octaves: rows,
                    column_octaves: columns,
                    block_lengths: runs,
                    square_blocks: square,
                    skewed,
                    tail_factor: tail,
                },
            seed,
            normalization: evened,
            ..
        } = *self;
        MagnitudeGains { seed, rows, columns, runs, square, skewed, tail: (tail, TAIL_COLUMNS), common_gain: evened }
    }

    /// Computes the column factors once if there is more than one row.
    pub(crate) fn cache_column_factors(&self, rows: usize) {
        if rows > 1 {
            self.column_factors.get_or_init(|| {
                const CHUNK: usize = 1 << 12;
                let mut factors = vec![0.0; self.cols];
                fill_chunks(&mut factors, CHUNK, |chunk, factors| {
                    factors.iter_mut().zip(chunk * CHUNK..).for_each(|(factor, col)| *factor = self.column_factor(col));
                });
                factors
            });
        }
    }

    /// Multiplies part of a row, starting at column `first`, by its factors.
    pub(crate) fn apply(&self, row: usize, first: usize, values: &mut [f32]) {
        match self.column_factors.get() {
            Some(columns) => {
                let columns = &columns[first..first + values.len()];
                values.iter_mut().zip(columns).for_each(|(value, column)| *value *= column);
            }
            None => values.iter_mut().zip(first..).for_each(|(value, col)| *value *= self.column_factor(col)),
        }
        let run = self.pattern.block_lengths[0];
        let shared = self.random_steps(self.pattern.row_octaves, [1 + row, 0, 0]);
        let mut of_row =
            RowScaleFactors { factors: self, row, row_steps: shared, block_steps: Vec::new(), skew_steps: 0 };
        // The first part may start inside a block.
        let (rest, whole) = values.split_at_mut((first.next_multiple_of(run) - first).min(values.len()));
        let runs = std::iter::once(rest).filter(|rest| !rest.is_empty()).chain(whole.chunks_mut(run));
        let mut col = first;
        for values in runs {
            let [positive, negative] = of_row.block_factors(col);
            values.iter_mut().for_each(|value| *value *= if *value < 0.0 { negative } else { positive });
            col += values.len();
        }
    }

    fn column_factor(&self, col: usize) -> f32 {
        let tail =
            if self.cols > TAIL_COLUMNS && col + TAIL_COLUMNS >= self.cols { self.pattern.tail_factor } else { 1.0 };
        exp2_steps(self.random_steps(self.pattern.column_octaves, [0, col, 0])) * tail * self.normalization
    }

    /// Random exponent of a position, in steps, uniform within half of `octaves` on either side of zero.
    fn random_steps(&self, octaves: u32, place: [usize; 3]) -> i32 {
        let mixed = place.into_iter().fold(self.seed, |state, part| mix(state ^ mix(part as u64)));
        let steps = octaves * STEPS_PER_OCTAVE as u32;
        ((u64::from(steps) * (mixed >> 40)) >> 24) as i32 - (steps / 2) as i32
    }
}

/// Block factors of a row, visited in column order; exponents of long blocks are drawn once.
struct RowScaleFactors<'a> {
    factors: &'a ScaleFactors,
    row: usize,
    row_steps: i32,
    /// Exponent of the current block of each length; empty before the first column.
    block_steps: Vec<i32>,
    skew_steps: i32,
}

impl RowScaleFactors<'_> {
    /// Factors of positive and negative values in the shortest block that contains `col`.
    ///
    /// `col` is the first column visited or the start of a block.
    fn block_factors(&mut self, col: usize) -> [f32; 2] {
        let Self { factors: louder, row, row_steps: shared, block_steps: drawn, skew_steps: skew } = self;
        let MagnitudePattern { block_lengths: runs, square_blocks: square, skewed, .. } = louder.pattern;
        let begins = drawn.is_empty();
        drawn.resize(runs.len(), 0);
        for (drawn, &run) in drawn.iter_mut().zip(runs) {
            if begins || col.is_multiple_of(run) {
                let above = 1 + if square { *row / run } else { *row };
                *drawn = louder.random_steps(1, [above, col / run, run]);
            }
        }
        let last = runs.len() - 1;
        if skewed && (begins || col.is_multiple_of(runs[last])) {
            *skew = louder.random_steps(1, [1 + *row, col / runs[last], 1]) - drawn[last];
        }
        let steps = *shared + drawn.iter().sum::<i32>();
        [exp2_steps(steps), exp2_steps(steps + *skew)]
    }
}

const STEPS_PER_OCTAVE: usize = 256;

/// Powers of two of the steps within an octave.
pub(crate) static STEP_POWERS: LazyLock<[f32; STEPS_PER_OCTAVE]> =
    LazyLock::new(|| std::array::from_fn(|step| libm::exp2(step as f64 / STEPS_PER_OCTAVE as f64) as f32));

/// Two to the power of `steps` / 256.
fn exp2_steps(steps: i32) -> f32 {
    let octave = steps.div_euclid(STEPS_PER_OCTAVE as i32);
    STEP_POWERS[steps.rem_euclid(STEPS_PER_OCTAVE as i32) as usize] * f32::from_bits(((127 + octave) as u32) << 23)
}
