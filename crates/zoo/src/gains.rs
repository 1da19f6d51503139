//! Data that only the gate sees: rows, columns and runs of neighbors differ in loudness, so that a scale taken from the
//! wrong place shows. Plain data have nearly the same largest value everywhere.

use crate::louder::{Gains, Louder};
use crate::{Matrix, Tensors};
use calorimeter_recipes::{Dtype, FloatType, Weight};
use rayon::prelude::*;

/// A weight: with all block sizes that recipes have.
pub const WEIGHT: Gains =
    Gains { rows: 3, columns: 0, runs: &[16, 32, 64, 128, 256], square: false, skewed: true, tail: 4.0 };

/// An input: with fewer and smaller gains, because a row's loudest number leaves the fewer codes to the others, the louder
/// it is.
const INPUT: Gains = Gains { rows: 2, columns: 1, runs: &[16, 32], square: false, skewed: false, tail: 2.0 };

/// An operand of an operator, which may be a weight or an input, either side up.
pub const OPERAND: Gains = Gains { rows: 2, columns: 2, runs: &[32, 128], square: true, skewed: false, tail: 2.0 };

/// Sets the gate's data apart from the timed ones of the same seed.
pub const GATE: u64 = 0x6761_7465;

/// Plain tensors made louder and quieter in places.
pub fn applied(plain: &Tensors, dtype: Dtype, seed: u64) -> Tensors {
    let Matrix { rows, cols, values } = &plain.input;
    let mut values = Louder::new(INPUT, seed, *cols).of(values);
    values.par_iter_mut().for_each(|value| *value = dtype.round(*value));
    let weight = |(weight, seed): (&Weight, u64)| {
        let values = Louder::new(WEIGHT, seed, weight.k()).of(weight.values());
        Weight::new(weight.n(), weight.k(), values, dtype)
    };
    Tensors {
        input: Matrix { rows: *rows, cols: *cols, values: values.into() },
        weights: plain.weights.iter().zip(seed.wrapping_add(1)..).map(weight).collect(),
    }
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
    fn rows_and_blocks_of_every_size_differ_from_their_neighbors() {
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
