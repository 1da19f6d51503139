//! Input data for the correctness gate: rows, columns and blocks differ in magnitude.
//!
//! A scale read from the wrong row or block then produces a visible error. In plain random data all groups have nearly
//! equal amax.

use crate::scale_factors::{MagnitudePattern, ScaleFactors};
use crate::{Matrix, Tensors};
use calorimeter_recipes::{Dtype, FloatType, Weight};
use rayon::prelude::*;

/// Pattern of weights: covers all block sizes that recipes use.
pub(crate) const WEIGHT_PATTERN: MagnitudePattern = MagnitudePattern {
    row_octaves: 3,
    column_octaves: 0,
    block_lengths: &[16, 32, 64, 128, 256],
    square_blocks: false,
    skewed: true,
    tail_factor: 4.0,
};

/// Pattern of model inputs: fewer and smaller factors, because a large amax leaves fewer quantized values to the other
/// elements of the row.
const INPUT_PATTERN: MagnitudePattern = MagnitudePattern {
    row_octaves: 2,
    column_octaves: 1,
    block_lengths: &[16, 32],
    square_blocks: false,
    skewed: false,
    tail_factor: 2.0,
};

/// Pattern of operator inputs, which may be a weight or an activation in either orientation.
pub(crate) const OPERAND_PATTERN: MagnitudePattern = MagnitudePattern {
    row_octaves: 2,
    column_octaves: 2,
    block_lengths: &[32, 128],
    square_blocks: true,
    skewed: false,
    tail_factor: 2.0,
};

/// XORed into the seed, so that gate data differs from timed data.
pub(crate) const GATE_SEED: u64 = 0x6761_7465;

/// Scales plain tensors by the magnitude patterns of inputs and weights.
pub(crate) fn scale_tensors(plain: &Tensors, dtype: Dtype, seed: u64) -> Tensors {
    let Matrix { rows, cols, values } = &plain.input;
    let mut values = ScaleFactors::new(INPUT_PATTERN, seed, *cols).scaled(values);
    values.par_iter_mut().for_each(|value| *value = dtype.round(*value));
    let weight = |(weight, seed): (&Weight, u64)| {
        let values = ScaleFactors::new(WEIGHT_PATTERN, seed, weight.k()).scaled(weight.values());
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
    fn rows_and_blocks_differ_from_their_neighbors() {
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
    fn group_midpoints_are_not_zero() {
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
