//! Every operator on every set of instructions of this processor, beside the same in double precision.

use super::*;
use crate::host::lanes::{FloatJob, Lanes, WIDTH};
use crate::host::portable::Portable;
use crate::rowwise::{bf16, widen};

/// Rows of numbers that differ from row to row and from column to column.
fn numbers(rows: usize, columns: usize, seed: usize) -> Vec<f32> {
    let at = |index: usize| ((index * 7919 + seed * 104_729) % 1009) as f32 / 150.0 - 3.0;
    (0..rows * columns).map(|index| at(index) + (index / columns % 9) as f32 * 0.25).collect()
}

/// What an operator makes of a row in double precision: each output, or the row's value.
fn exact(kernel: Rowwise, rows: &[&[f32]]) -> Vec<Vec<f64>> {
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
        Rowwise::LayerNorm => vec![normal(&x, rows[1], rows[2])],
        Rowwise::LayerNormGelu => vec![normal(&x, rows[1], rows[2]).into_iter().map(gelu).collect()],
        Rowwise::AddLayerNorm => {
            let sum: Vec<f64> = x.iter().zip(wide(rows[1])).map(|(x, y)| x + y).collect();
            vec![sum.clone(), normal(&sum, rows[2], rows[3])]
        }
        Rowwise::RmsNorm { epsilon } => {
            let square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
            each(&|col| x[col] / (square + f64::from(epsilon)).sqrt() * second(col))
        }
        Rowwise::Softmax => each(&|col| (x[col] - most).exp() / total),
        Rowwise::Gelu => each(&|col| gelu(x[col])),
        Rowwise::GeluTanh => {
            let inner = |x: f64| (2.0 / core::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            each(&|col| 0.5 * x[col] * (1.0 + inner(x[col]).tanh()))
        }
        Rowwise::Silu => each(&|col| x[col] * sigmoid(x[col])),
        Rowwise::Sigmoid => each(&|col| sigmoid(x[col])),
        Rowwise::SiluMul => each(&|col| x[col] * sigmoid(x[col]) * second(col)),
        Rowwise::Add => each(&|col| x[col] + second(col)),
        Rowwise::Axpy { factor } => each(&|col| f64::from(factor) * x[col] + second(col)),
        Rowwise::Dot => vec![vec![x.iter().enumerate().map(|(col, x)| x * second(col)).sum()]],
        Rowwise::CrossEntropy => vec![vec![total.ln() + most - x[rows[1][0] as usize]]],
        Rowwise::SquaredError => {
            vec![vec![x.iter().enumerate().map(|(col, x)| (x - second(col)).powi(2)).sum::<f64>() / x.len() as f64]]
        }
    }
}

/// Each operator with how many inputs have all rows, how many are one row for all, and how many outputs there are.
const ALL: [(Rowwise, usize, usize, usize); 15] = [
    (Rowwise::LayerNorm, 1, 2, 1),
    (Rowwise::AddLayerNorm, 2, 2, 2),
    (Rowwise::LayerNormGelu, 1, 2, 1),
    (Rowwise::RmsNorm { epsilon: 1e-6 }, 1, 1, 1),
    (Rowwise::Softmax, 1, 0, 1),
    (Rowwise::Gelu, 1, 0, 1),
    (Rowwise::GeluTanh, 1, 0, 1),
    (Rowwise::Silu, 1, 0, 1),
    (Rowwise::Sigmoid, 1, 0, 1),
    (Rowwise::SiluMul, 2, 0, 1),
    (Rowwise::Add, 2, 0, 1),
    (Rowwise::Axpy { factor: 2.5 }, 2, 0, 1),
    (Rowwise::Dot, 2, 0, 0),
    (Rowwise::CrossEntropy, 1, 0, 0),
    (Rowwise::SquaredError, 2, 0, 0),
];

fn check(
    (kernel, whole, shared, outputs): (Rowwise, usize, usize, usize),
    set: FloatSet,
    size: (usize, usize),
    half: bool,
) {
    let (rows, columns) = size;
    let store = |values: Vec<f32>| if half { Numbers::bf16(&values) } else { Numbers::F32(values) };
    let mut inputs: Vec<Numbers> = (0..whole).map(|seed| store(numbers(rows, columns, seed))).collect();
    inputs.extend((0..shared).map(|seed| store(numbers(1, columns, 9 + seed))));
    if kernel == Rowwise::CrossEntropy {
        inputs.push(Numbers::F32((0..rows).map(|row| ((row * 31) % columns) as f32).collect()));
    }
    let mut made: Vec<Numbers> = (0..outputs).map(|_| store(vec![f32::NAN; rows * columns])).collect();
    if outputs == 0 {
        made.push(Numbers::F32(vec![f32::NAN]));
    }
    kernel.by(set, &inputs, columns, &mut made);
    let values: Vec<Vec<f32>> = inputs.iter().map(Numbers::widened).collect();
    let of_row = |row: usize| {
        let row = |values: &Vec<f32>| match values.len() / rows.max(1) {
            _ if values.len() == columns && rows > 1 => 0..columns,
            width => row * width..(row + 1) * width,
        };
        values.iter().map(|values| &values[row(values)]).collect::<Vec<&[f32]>>()
    };
    let mut wanted: Vec<Vec<f64>> = vec![vec![]; made.len()];
    for row in 0..rows {
        exact(kernel, &of_row(row)).into_iter().zip(&mut wanted).for_each(|(row, wanted)| wanted.extend(row));
    }
    if outputs == 0 {
        let of = if kernel == Rowwise::Dot { 1.0 } else { rows as f64 };
        wanted[0] = vec![wanted[0].iter().sum::<f64>() / of];
    }
    let unit = if half && outputs > 0 { 1.0 / 256.0 } else { 2e-6 };
    for (made, wanted) in made.iter().zip(wanted) {
        for (index, (made, wanted)) in made.widened().into_iter().zip(wanted).enumerate() {
            let error = (f64::from(made) - wanted).abs();
            let said = format!("{kernel:?} by {} of {size:?}, {index}: {made} for {wanted}", set.name());
            assert!(error <= unit * wanted.abs() + 4e-6, "{said}");
        }
    }
}

#[test]
fn every_set_of_instructions_makes_what_double_precision_makes() {
    for one in ALL {
        for set in FloatSet::here() {
            // One row, and more rows than columns; columns around vectors, and pieces that are cut off.
            for size in [(1, 2), (3, 17), (5, 129), (70, 1000), (2, 9001)] {
                check(one, set, size, false);
                check(one, set, size, true);
            }
        }
    }
}

#[test]
fn a_number_that_is_none_is_not_hidden() {
    for (kernel, whole, shared, outputs) in ALL {
        let mut rows = numbers(2, 40, 0);
        rows[45] = f32::NAN;
        let mut inputs = vec![Numbers::F32(rows); whole];
        inputs.extend((0..shared).map(|_| Numbers::F32(vec![1.0; 40])));
        if kernel == Rowwise::CrossEntropy {
            inputs.push(Numbers::F32(vec![3.0; 2]));
        }
        let count = if outputs == 0 { 1 } else { 80 };
        let mut made = vec![Numbers::F32(vec![0.0; count]); outputs.max(1)];
        kernel.by(FloatSet::Portable(Portable), &inputs, 40, &mut made);
        let at = if outputs == 0 { 0 } else { 45 };
        assert!(made.iter().all(|made| made.at(at).is_nan()), "{kernel:?}");
    }
}

#[test]
fn rows_of_equal_numbers_are_normalized_to_the_bias() {
    let inputs = [7.0, 1.0, 0.5].map(|value| Numbers::F32(vec![value; 33]));
    let mut made = [Numbers::F32(vec![f32::NAN; 33])];
    Rowwise::LayerNorm.run(&inputs, 33, &mut made);
    assert_eq!(made, [Numbers::F32(vec![0.5; 33])]);
}

#[test]
fn without_gain_and_bias_a_row_is_as_with_one_and_nothing() {
    for columns in [1, 3, 17, 129, 1000] {
        let x = numbers(3, columns, 1);
        let mut plain = vec![f32::NAN; x.len()];
        layer_norm(&x, columns, &mut plain);
        let inputs = [x, vec![1.0; columns], vec![0.0; columns]].map(Numbers::F32);
        let mut made = [Numbers::F32(vec![f32::NAN; 3 * columns])];
        Rowwise::LayerNorm.by(FloatSet::Portable(Portable), &inputs, columns, &mut made);
        assert_eq!(made, [Numbers::F32(plain)]);
    }
}

#[derive(Clone, Copy)]
struct Rounding;

impl FloatJob for Rounding {
    #[inline(always)]
    fn on<L: Lanes>(self, lanes: L) {
        let numbers: Vec<f32> = (0..=u32::MAX).step_by(65_521).skip(3).map(f32::from_bits).collect();
        assert_ne!(numbers.len() % WIDTH, 0);
        let mut rounded = vec![0; numbers.len()];
        lanes.round_to_bf16(&numbers, &mut rounded);
        for (x, made) in numbers.into_iter().zip(rounded) {
            let right = if x.is_nan() { widen(made).is_nan() } else { made == bf16(x) };
            let nothing = x.is_subnormal() && widen(made) == 0.0;
            assert!(right || nothing, "{x:e} is rounded to {:e}", widen(made));
        }
    }
}

#[test]
fn every_set_rounds_to_the_nearest_bf16() {
    FloatSet::here().into_iter().for_each(|set| set.run(Rounding));
}
