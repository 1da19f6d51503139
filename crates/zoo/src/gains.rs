//! Data that only the gate sees: rows, columns and runs of neighbours differ in loudness, so that a scale taken from the
//! wrong place shows. Plain data have nearly the same largest value everywhere.

use crate::{Matrix, Tensors};
use calorimeter_recipes::{Dtype, FloatType, Weight};
use rayon::prelude::*;

/// How loudness differs from place to place in a tensor. Each gain is log-uniform around one.
struct Gains {
    seed: u64,
    /// Octaves of the gains of rows.
    rows: f32,
    /// Octaves of the gains of columns, the same in every row.
    columns: f32,
    /// Runs of neighbours in a row that share a gain of one octave, from the shortest; they lie in one another like the
    /// blocks of recipes.
    runs: &'static [usize],
    /// Whether a run is as high as it is long: a block may lie along either side of an operand.
    square: bool,
    /// Whether the longest run has one gain for positive and one for negative numbers, so that its middle is not zero.
    skewed: bool,
    /// The gain of the last columns: a product that leaves them out is plainly wrong.
    tail: f32,
}

/// Numbers of a row that a thread makes louder at a time, at least.
const PIECE: usize = 1 << 14;

/// Columns at the end that are louder.
const TAIL: usize = 8;

/// A weight: with all block sizes that recipes have.
const WEIGHT: Gains =
    Gains { seed: 0, rows: 3.0, columns: 0.0, runs: &[16, 32, 64, 128, 256], square: false, skewed: true, tail: 4.0 };

/// An input: with fewer and smaller gains, because a row's loudest number leaves the fewer codes to the others, the louder
/// it is.
const INPUT: Gains =
    Gains { seed: 0, rows: 2.0, columns: 1.0, runs: &[16, 32], square: false, skewed: false, tail: 2.0 };

/// An operand of an operator, which may be a weight or an input, either side up.
const OPERAND: Gains =
    Gains { seed: 0, rows: 2.0, columns: 2.0, runs: &[32, 128], square: true, skewed: false, tail: 2.0 };

/// Sets the gate's data apart from the timed ones of the same seed.
pub const GATE: u64 = 0x6761_7465;

/// Plain tensors made louder and quieter in places.
pub fn applied(plain: &Tensors, dtype: Dtype, seed: u64) -> Tensors {
    let Matrix { rows, cols, values } = &plain.input;
    let mut values = Gains { seed, ..INPUT }.apply(values, *cols);
    values.par_iter_mut().for_each(|value| *value = dtype.round(*value));
    let weight = |(weight, seed): (&Weight, u64)| {
        let values = Gains { seed, ..WEIGHT }.apply(weight.values(), weight.k());
        Weight::new(weight.n(), weight.k(), values, dtype)
    };
    Tensors {
        input: Matrix { rows: *rows, cols: *cols, values: values.into() },
        weights: plain.weights.iter().zip(seed.wrapping_add(1)..).map(weight).collect(),
    }
}

/// Plain numbers of an operator's operand made louder and quieter in places.
pub fn of_operand(plain: &[f32], cols: usize, seed: u64) -> Vec<f32> {
    Gains { seed, ..OPERAND }.apply(plain, cols)
}

impl Gains {
    fn apply(&self, values: &[f32], cols: usize) -> Vec<f32> {
        let tail = |col: usize| if cols > TAIL && col + TAIL >= cols { self.tail } else { 1.0 };
        let column = |col: usize| (self.columns * self.draw([0, col, 0])).exp2() * tail(col);
        let columns: Vec<f32> = (0..cols).into_par_iter().map(column).collect();
        let mut louder = vec![0.0; values.len()];
        louder.par_chunks_mut(cols).zip(values.par_chunks(cols)).enumerate().for_each(|(row, (louder, values))| {
            // Threads share long rows, in pieces that end with a run.
            let piece = PIECE.next_multiple_of(self.runs[self.runs.len() - 1]);
            let pieces = louder.par_chunks_mut(piece).zip(values.par_chunks(piece).zip(columns.par_chunks(piece)));
            pieces.enumerate().for_each(|(at, (louder, (values, columns)))| {
                let each = louder.iter_mut().zip(values).zip(columns);
                each.for_each(|((louder, value), column)| *louder = value * column);
                let mut of_runs = self.of_row(row);
                for (run, values) in louder.chunks_mut(self.runs[0]).enumerate() {
                    let [positive, negative] = of_runs.at(at * piece + run * self.runs[0]);
                    values.iter_mut().for_each(|value| *value *= if *value < 0.0 { negative } else { positive });
                }
            });
        });
        // As loud on the whole as before: scores of attention must not grow.
        let evened = (energy(values) / energy(&louder)).sqrt();
        louder.par_iter_mut().for_each(|value| *value = (f64::from(*value) * evened) as f32);
        louder
    }

    /// The gains of a row's runs, from any column on at which one of the longest begins.
    fn of_row(&self, row: usize) -> OfRow<'_> {
        let shared = self.rows * self.draw([1 + row, 0, 0]);
        OfRow { gains: self, row, shared, octaves: vec![0.0; self.runs.len()], skew: 0.0 }
    }

    /// A number from -1/2 to 1/2 for a place.
    fn draw(&self, place: [usize; 3]) -> f32 {
        let mixed = place.into_iter().fold(self.seed, |state, part| mix(state ^ mix(part as u64)));
        (mixed >> 40) as f32 / (1 << 24) as f32 - 0.5
    }
}

/// The gains of a row's runs where its columns are gone through: those of long runs are drawn once.
struct OfRow<'a> {
    gains: &'a Gains,
    row: usize,
    shared: f32,
    /// Of the run of each length that the column is in.
    octaves: Vec<f32>,
    skew: f32,
}

impl OfRow<'_> {
    /// The gains of positive and negative numbers in the shortest run that begins at a column.
    fn at(&mut self, col: usize) -> [f32; 2] {
        let Gains { runs, square, skewed, .. } = *self.gains;
        for (octave, &run) in self.octaves.iter_mut().zip(runs) {
            if col.is_multiple_of(run) {
                let above = 1 + if square { self.row / run } else { self.row };
                *octave = self.gains.draw([above, col / run, run]);
            }
        }
        let last = runs.len() - 1;
        if skewed && col.is_multiple_of(runs[last]) {
            self.skew = self.gains.draw([1 + self.row, col / runs[last], 1]) - self.octaves[last];
        }
        let shared = self.shared + self.octaves.iter().sum::<f32>();
        [shared.exp2(), (shared + self.skew).exp2()]
    }
}

/// One part after the other, so that every machine gives the same bits.
fn energy(values: &[f32]) -> f64 {
    const PART: usize = 1 << 16;
    let of_part = |part: &[f32]| part.iter().map(|&value| f64::from(value).powi(2)).sum();
    let parts: Vec<f64> = values.par_chunks(PART).map(of_part).collect();
    parts.iter().sum::<f64>().max(f64::MIN_POSITIVE)
}

/// One step of SplitMix64.
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use crate::Problem;
    use calorimeter_recipes::Dtype;
    use calorimeter_shapes::Shape;

    fn loudest<'a>(runs: impl Iterator<Item = &'a [f32]>) -> Vec<f32> {
        runs.map(|run| run.iter().fold(0.0, |most: f32, value| most.max(value.abs()))).collect()
    }

    #[test]
    fn rows_and_blocks_of_every_size_differ_from_their_neighbours() {
        let shape = Shape::new(64, 1024, 64).unwrap();
        let problem = Problem { model: "linear".parse().unwrap(), shape, dtype: Dtype::F32, seed: 1 };
        let tensors = problem.gate_tensors();
        for (values, sizes) in [
            (tensors.weights[0].values(), &[16, 32, 64, 128, 256, 1024][..]),
            (&tensors.input.values[..], &[16, 32, 1024][..]),
        ] {
            for &size in sizes {
                let loudest = loudest(values.chunks(size));
                let far = loudest.windows(2).filter(|pair| (pair[0] / pair[1]).log2().abs() > 0.1).count();
                assert!(far * 4 > loudest.len() * 3, "{size}: {far} of {}", loudest.len());
            }
        }
    }

    #[test]
    fn the_middle_of_a_group_is_not_zero() {
        let shape = Shape::new(1, 1024, 64).unwrap();
        let problem = Problem { model: "linear".parse().unwrap(), shape, dtype: Dtype::F32, seed: 1 };
        let tensors = problem.gate_tensors();
        for size in [32, 256] {
            let groups = tensors.weights[0].values().chunks(size);
            let skew = |group: &[f32]| {
                let (low, high) = group.iter().fold((0f32, 0f32), |(low, high), &x| (low.min(x), high.max(x)));
                ((high + low) / (high - low)).abs()
            };
            let skewed = groups.clone().filter(|group| skew(group) > 0.05).count();
            assert!(skewed * 2 > groups.count(), "{size}");
        }
    }
}
