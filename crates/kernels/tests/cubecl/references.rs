//! Double-precision references.

use calorimeter_kernels::Adamw;
use calorimeter_kernels::cube::SmoothActivation;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

pub(crate) fn activation(activation: SmoothActivation, x: f64) -> f64 {
    match activation {
        SmoothActivation::Gelu => x * 0.5 * libm::erfc(-x * FRAC_1_SQRT_2),
        SmoothActivation::GeluTanh => 0.5 * x * (1.0 + ((2.0 / PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh()),
        SmoothActivation::Silu => x / (1.0 + (-x).exp()),
    }
}

pub(crate) fn layer_norm(row: &[f64], gain: &[f64], bias: &[f64], epsilon: f64) -> Vec<f64> {
    let count = row.len() as f64;
    let mean = row.iter().sum::<f64>() / count;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let normal = |x: &f64| (x - mean) / (variance + epsilon).sqrt();
    row.iter().zip(gain).zip(bias).map(|((x, gain), bias)| normal(x) * gain + bias).collect()
}

pub(crate) fn rms_norm(row: &[f64], gain: &[f64], epsilon: f64) -> Vec<f64> {
    let squares = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    row.iter().zip(gain).map(|(x, gain)| x / (squares + epsilon).sqrt() * gain).collect()
}

pub(crate) fn softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total = row.iter().map(|x| (x - largest).exp()).sum::<f64>();
    row.iter().map(|x| (x - largest).exp() / total).collect()
}

/// Weight, first moment and second moment after an AdamW step.
pub(crate) fn adamw(settings: Adamw, [weight, gradient, mean, square]: [f64; 4]) -> [f64; 3] {
    let Adamw { learning_rate, betas: [first, second], corrections, epsilon, decay } = settings;
    let mean = first * mean + (1.0 - first) * gradient;
    let square = second * square + (1.0 - second) * gradient * gradient;
    let direction = mean * corrections[0] / ((square * corrections[1]).sqrt() + epsilon);
    [weight - learning_rate * (direction + decay * weight), mean, square]
}
