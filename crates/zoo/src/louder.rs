//! Numbers made louder or quieter by gains that follow from a seed and a place alone.

use crate::stream::mix;
#[cfg(feature = "cuda")]
use calorimeter_kernels::native::PlaceGains;
use rayon::prelude::*;
use std::f64::consts::LN_2;
use std::sync::{LazyLock, OnceLock};

/// How loudness differs from place to place in a tensor. Each gain is log-uniform around one. Gains are told in steps, so that
/// every machine and device comes to the same bits.
#[derive(Debug, Clone, Copy)]
pub struct Gains {
    /// Octaves of the gains of rows.
    pub rows: u32,
    /// Octaves of the gains of columns, the same in every row.
    pub columns: u32,
    /// Runs of neighbors in a row that share a gain of one octave, from the shortest; they lie in one another like the
    /// blocks of recipes.
    pub runs: &'static [usize],
    /// Whether a run is as high as it is long: a block may lie along either side of an operand.
    pub square: bool,
    /// Whether the longest run has one gain for positive and one for negative numbers, so that its middle is not zero.
    pub skewed: bool,
    /// The gain of the last columns: a product that leaves them out is plainly wrong.
    pub tail: f32,
}

/// Numbers of a row that a thread makes louder at a time.
const PIECE: usize = 1 << 14;

/// Columns at the end that are louder.
const TAIL: usize = 8;

/// Gains of a seed for rows of so many numbers.
#[derive(Debug)]
pub struct Louder {
    gains: Gains,
    seed: u64,
    cols: usize,
    /// What leaves numbers as loud on the whole as before, to be expected: scores of attention must not grow.
    evened: f32,
    /// Those of all columns, where several rows need them.
    columns: OnceLock<Vec<f32>>,
}

impl Louder {
    pub fn new(gains: Gains, seed: u64, cols: usize) -> Self {
        // The mean square of a gain of so many octaves.
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

    /// Whole rows of numbers with their gains.
    pub fn of(&self, values: &[f32]) -> Vec<f32> {
        let mut louder = values.to_vec();
        self.share_columns(values.len() / self.cols.max(1));
        louder.par_chunks_mut(self.cols.max(1)).enumerate().for_each(|(row, values)| {
            let pieces = values.par_chunks_mut(PIECE).enumerate();
            pieces.for_each(|(piece, values)| self.apply(row, piece * PIECE, values));
        });
        louder
    }

    /// The gains as a device is told them.
    #[cfg(feature = "cuda")]
    pub fn gains(&self) -> PlaceGains<'static> {
        let Self { gains: Gains { rows, columns, runs, square, skewed, tail }, seed, evened, .. } = *self;
        PlaceGains { seed, rows, columns, runs, square, skewed, tail: (tail, TAIL), evened }
    }

    /// Draws the gains of columns once for so many rows.
    pub fn share_columns(&self, rows: usize) {
        if rows > 1 {
            self.columns.get_or_init(|| (0..self.cols).into_par_iter().map(|col| self.of_column(col)).collect());
        }
    }

    /// Gives numbers of a row, from a column on, their gains.
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
        // A run that began before is the rest of one.
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

    /// Steps, of so many octaves around none, for a place.
    fn draw(&self, octaves: u32, place: [usize; 3]) -> i32 {
        let mixed = place.into_iter().fold(self.seed, |state, part| mix(state ^ mix(part as u64)));
        let steps = octaves * STEPS as u32;
        ((u64::from(steps) * (mixed >> 40)) >> 24) as i32 - (steps / 2) as i32
    }
}

/// The gains of a row's runs where its columns are gone through: those of long runs are drawn once.
struct OfRow<'a> {
    louder: &'a Louder,
    row: usize,
    shared: i32,
    /// Of the run of each length that the column is in; none before the first.
    drawn: Vec<i32>,
    skew: i32,
}

impl OfRow<'_> {
    /// The gains of positive and negative numbers in the shortest run that a column is in: the first that is asked for, or one
    /// that begins there.
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

/// Steps of an octave.
const STEPS: usize = 256;

/// The powers of two of an octave's steps.
pub static POWERS: LazyLock<[f32; STEPS]> =
    LazyLock::new(|| std::array::from_fn(|step| libm::exp2(step as f64 / STEPS as f64) as f32));

/// Two to the power of so many steps.
fn gain(steps: i32) -> f32 {
    let octave = steps.div_euclid(STEPS as i32);
    POWERS[steps.rem_euclid(STEPS as i32) as usize] * f32::from_bits(((127 + octave) as u32) << 23)
}
