//! Double-precision reference of `transformer_block`.

use super::{HEADS, TOKENS};
use crate::normalize::rms_norm_exact;
use crate::{Activate, Activation, ExactLinear, Matrix, OutputSample};

/// Outputs of the sampled sequences.
pub(super) fn sampled_sequences(k: usize, input: &Matrix, linears: &[ExactLinear], sample: &OutputSample) -> Vec<f64> {
    let sequences = sample.rows.chunks(TOKENS as usize);
    sequences.flat_map(|rows| forward_sequence(rows.iter().flat_map(|&r| input.row(r)).copied(), k, linears)).collect()
}

/// Forward pass of one sequence in double precision.
fn forward_sequence(input: impl Iterator<Item = f32>, k: usize, linears: &[ExactLinear]) -> Vec<f64> {
    let input: Vec<f64> = input.map(f64::from).collect();
    let (tokens, head) = (TOKENS as usize, k / HEADS as usize);
    let norm = |x: &[f64]| -> Vec<f64> { x.chunks(k).flat_map(rms_norm_exact).collect() };
    let qkv = linears[0].whole_output(&norm(&input));
    let mut mixed = vec![0.0; tokens * k];
    for h in 0..HEADS as usize {
        let part = |token: usize, which: usize| &qkv[token * 3 * k + which * k + h * head..][..head];
        for t in 0..tokens {
            let scores: Vec<f64> = (0..tokens).map(|s| dot(part(t, 0), part(s, 1)) / (head as f64).sqrt()).collect();
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for (s, weight) in weights.iter().enumerate() {
                for (out, value) in mixed[t * k + h * head..][..head].iter_mut().zip(part(s, 2)) {
                    *out += weight / sum * value;
                }
            }
        }
    }
    let x: Vec<f64> = linears[1].whole_output(&mixed).iter().zip(&input).map(|(a, b)| a + b).collect();
    let hidden: Vec<f64> =
        linears[2].whole_output(&norm(&x)).into_iter().map(|h| Activation::Gelu.eval_f64(h)).collect();
    linears[3].whole_output(&hidden).iter().zip(&x).map(|(a, b)| a + b).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
