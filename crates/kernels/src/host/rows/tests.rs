//! Every operator with every instruction set of this processor, against double precision.

use super::*;
use crate::host::float_simd::{FloatSimd, FloatTask, WIDTH};
use crate::host::portable::Portable;
use crate::rowwise::{bf16_to_f32, to_bf16};

/// Deterministic values that vary across rows and columns.
fn numbers(rows: usize, columns: usize, seed: usize) -> Vec<f32> {
    let at = |index: usize| ((index * 7919 + seed * 104_729) % 1009) as f32 / 150.0 - 3.0;
    (0..rows * columns).map(|index| at(index) + (index / columns % 9) as f32 * 0.25).collect()
}

/// Result of an operator for one row in double precision: each output, or the value of the row.
fn exact(kernel: RowwiseOperator, rows: &[&[f32]]) -> Vec<Vec<f64>> {
    let wide = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let x = wide(rows[0]);
    let each = |function: &dyn Fn(usize) -> f64| vec![(0..x.len()).map(function).collect::<Vec<f64>>()];
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let gelu = |x: f64| 0.5 * x * libm::erfc(-x * core::f64::consts::FRAC_1_SQRT_2);
    let normal = |x: &[f64], gain: &[f32], bias: &[f32]| -> Vec<f64> {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
        let affine = gain.iter().zip(bias).map(|(&gain, &bias)| (f64::from(gain), f64::from(bias)));
        x.iter().zip(affine).map(|(x, (gain, bias))| (x - mean) / (variance + 1e-5).sqrt() * gain + bias).collect()
    };
    let second = |col: usize| f64::from(rows[1][col]);
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = x.iter().map(|x| (x - most).exp()).sum();
    match kernel {
        RowwiseOperator::LayerNorm => vec![normal(&x, rows[1], rows[2])],
        RowwiseOperator::LayerNormGelu => vec![normal(&x, rows[1], rows[2]).into_iter().map(gelu).collect()],
        RowwiseOperator::AddLayerNorm => {
            let sum: Vec<f64> = x.iter().zip(wide(rows[1])).map(|(x, y)| x + y).collect();
            vec![sum.clone(), normal(&sum, rows[2], rows[3])]
        }
        RowwiseOperator::RmsNorm { epsilon } => {
            let square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
            each(&|col| x[col] / (square + f64::from(epsilon)).sqrt() * second(col))
        }
        RowwiseOperator::Softmax => each(&|col| (x[col] - most).exp() / total),
        RowwiseOperator::Gelu => each(&|col| gelu(x[col])),
        RowwiseOperator::GeluTanh => {
            let inner = |x: f64| (2.0 / core::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            each(&|col| 0.5 * x[col] * (1.0 + inner(x[col]).tanh()))
        }
        RowwiseOperator::Silu => each(&|col| x[col] * sigmoid(x[col])),
        RowwiseOperator::Sigmoid => each(&|col| sigmoid(x[col])),
        RowwiseOperator::SiluMul => each(&|col| x[col] * sigmoid(x[col]) * second(col)),
        RowwiseOperator::Add => each(&|col| x[col] + second(col)),
        RowwiseOperator::Axpy { factor } => each(&|col| f64::from(factor) * x[col] + second(col)),
        RowwiseOperator::Dot => vec![vec![x.iter().enumerate().map(|(col, x)| x * second(col)).sum()]],
        RowwiseOperator::CrossEntropy => vec![vec![total.ln() + most - x[rows[1][0] as usize]]],
        RowwiseOperator::SquaredError => {
            vec![vec![x.iter().enumerate().map(|(col, x)| (x - second(col)).powi(2)).sum::<f64>() / x.len() as f64]]
        }
    }
}

/// Operator, number of full inputs, number of shared rows, number of outputs.
const ALL: [(RowwiseOperator, usize, usize, usize); 15] = [
    (RowwiseOperator::LayerNorm, 1, 2, 1),
    (RowwiseOperator::AddLayerNorm, 2, 2, 2),
    (RowwiseOperator::LayerNormGelu, 1, 2, 1),
    (RowwiseOperator::RmsNorm { epsilon: 1e-6 }, 1, 1, 1),
    (RowwiseOperator::Softmax, 1, 0, 1),
    (RowwiseOperator::Gelu, 1, 0, 1),
    (RowwiseOperator::GeluTanh, 1, 0, 1),
    (RowwiseOperator::Silu, 1, 0, 1),
    (RowwiseOperator::Sigmoid, 1, 0, 1),
    (RowwiseOperator::SiluMul, 2, 0, 1),
    (RowwiseOperator::Add, 2, 0, 1),
    (RowwiseOperator::Axpy { factor: 2.5 }, 2, 0, 1),
    (RowwiseOperator::Dot, 2, 0, 0),
    (RowwiseOperator::CrossEntropy, 1, 0, 0),
    (RowwiseOperator::SquaredError, 2, 0, 0),
];

fn check(
    (kernel, whole, shared, outputs): (RowwiseOperator, usize, usize, usize),
    set: FloatIsa,
    size: (usize, usize),
    half: bool,
) {
    let (rows, columns) = size;
    let store = |values: Vec<f32>| if half { FloatVec::bf16(&values) } else { FloatVec::F32(values) };
    let mut inputs: Vec<FloatVec> = (0..whole).map(|seed| store(numbers(rows, columns, seed))).collect();
    inputs.extend((0..shared).map(|seed| store(numbers(1, columns, 9 + seed))));
    if kernel == RowwiseOperator::CrossEntropy {
        inputs.push(FloatVec::F32((0..rows).map(|row| ((row * 31) % columns) as f32).collect()));
    }
    let mut made: Vec<FloatVec> = (0..outputs).map(|_| store(vec![f32::NAN; rows * columns])).collect();
    if outputs == 0 {
        made.push(FloatVec::F32(vec![f32::NAN]));
    }
    kernel.run_with_isa(set, &inputs, columns, &mut made);
    let values: Vec<Vec<f32>> = inputs.iter().map(FloatVec::to_f32).collect();
    let of_row = |row: usize| {
        let row = |values: &Vec<f32>| match values.len() / rows.max(1) {
            _ if values.len() == columns && rows > 1 => 0..columns,
            width => row * width..(row + 1) * width,
        };
        values.iter().map(|values| &values[row(values)]).collect::<Vec<&[f32]>>()
    };
    let mut expected: Vec<Vec<f64>> = vec![vec![]; made.len()];
    for row in 0..rows {
        exact(kernel, &of_row(row)).into_iter().zip(&mut expected).for_each(|(row, expected)| expected.extend(row));
    }
    if outputs == 0 {
        let of = if kernel == RowwiseOperator::Dot { 1.0 } else { rows as f64 };
        expected[0] = vec![expected[0].iter().sum::<f64>() / of];
    }
    let unit = if half && outputs > 0 { 1.0 / 256.0 } else { 2e-6 };
    for (made, expected) in made.iter().zip(expected) {
        for (index, (made, expected)) in made.to_f32().into_iter().zip(expected).enumerate() {
            let error = (f64::from(made) - expected).abs();
            let message = format!("{kernel:?} by {} of {size:?}, {index}: {made} instead of {expected}", set.name());
            assert!(error <= unit * expected.abs() + 4e-6, "{message}");
        }
    }
}

#[test]
fn every_isa_matches_double_precision() {
    for one in ALL {
        for set in FloatIsa::available() {
            // One row, and more rows than columns; columns around the vector width, and incomplete chunks.
            for size in [(1, 2), (3, 17), (5, 129), (70, 1000), (2, 9001)] {
                check(one, set, size, false);
                check(one, set, size, true);
            }
        }
    }
}

#[test]
fn nan_inputs_reach_the_output() {
    for (kernel, whole, shared, outputs) in ALL {
        let mut rows = numbers(2, 40, 0);
        rows[45] = f32::NAN;
        let mut inputs = vec![FloatVec::F32(rows); whole];
        inputs.extend((0..shared).map(|_| FloatVec::F32(vec![1.0; 40])));
        if kernel == RowwiseOperator::CrossEntropy {
            inputs.push(FloatVec::F32(vec![3.0; 2]));
        }
        let count = if outputs == 0 { 1 } else { 80 };
        let mut made = vec![FloatVec::F32(vec![0.0; count]); outputs.max(1)];
        kernel.run_with_isa(FloatIsa::Portable(Portable), &inputs, 40, &mut made);
        let at = if outputs == 0 { 0 } else { 45 };
        assert!(made.iter().all(|made| made.get(at).is_nan()), "{kernel:?}");
    }
}

#[test]
fn constant_rows_normalize_to_the_bias() {
    let inputs = [7.0, 1.0, 0.5].map(|value| FloatVec::F32(vec![value; 33]));
    let mut made = [FloatVec::F32(vec![f32::NAN; 33])];
    RowwiseOperator::LayerNorm.run(&inputs, 33, &mut made);
    assert_eq!(made, [FloatVec::F32(vec![0.5; 33])]);
}

#[test]
fn plain_layer_norm_equals_unit_gain_zero_bias() {
    for columns in [1, 3, 17, 129, 1000] {
        let x = numbers(3, columns, 1);
        let mut plain = vec![f32::NAN; x.len()];
        layer_norm(&x, columns, &mut plain);
        let inputs = [x, vec![1.0; columns], vec![0.0; columns]].map(FloatVec::F32);
        let mut made = [FloatVec::F32(vec![f32::NAN; 3 * columns])];
        RowwiseOperator::LayerNorm.run_with_isa(FloatIsa::Portable(Portable), &inputs, columns, &mut made);
        assert_eq!(made, [FloatVec::F32(plain)]);
    }
}

#[derive(Clone, Copy)]
struct Rounding;

impl FloatTask for Rounding {
    #[inline(always)]
    fn execute<L: FloatSimd>(self, lanes: L) {
        let numbers: Vec<f32> = (0..=u32::MAX).step_by(65_521).skip(3).map(f32::from_bits).collect();
        assert_ne!(numbers.len() % WIDTH, 0);
        let mut rounded = vec![0; numbers.len()];
        lanes.round_to_bf16(&numbers, &mut rounded);
        for (x, made) in numbers.into_iter().zip(rounded) {
            let right = if x.is_nan() { bf16_to_f32(made).is_nan() } else { made == to_bf16(x) };
            let nothing = x.is_subnormal() && bf16_to_f32(made) == 0.0;
            assert!(right || nothing, "{x:e} was rounded to {:e}", bf16_to_f32(made));
        }
    }
}

#[test]
fn every_isa_rounds_to_nearest_bf16() {
    FloatIsa::available().into_iter().for_each(|set| set.run(Rounding));
}
