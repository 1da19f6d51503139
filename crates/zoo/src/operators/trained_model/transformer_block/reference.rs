//! Forward and backward pass of `transformer_block` in double precision.

use super::parameters::{ATTENTION_GAIN, DOWN, MLP_GAIN, PROJECT, QKV, UP};
use crate::models::transformer_block::{HEADS, TOKENS};
use crate::operators::trained_model::architecture::ReferencePass;
use crate::operators::trained_model::derivatives;
use crate::operators::trained_model::matrix_f64::{MatrixF64, dot};
use crate::operators::trained_model::norms::Norm;
use crate::operators::trained_model::reference_layers::ReferenceLayers;
use crate::{Activate, Activation};
use rayon::prelude::*;

pub(super) fn forward_backward(
    layers: &dyn ReferenceLayers,
    input: &MatrixF64,
    parameters: &[MatrixF64],
    gradient: Option<&MatrixF64>,
) -> ReferencePass {
    let gained = |rows: &MatrixF64, gain: usize| {
        rows.map_rows(|_, row| row.iter().zip(&parameters[gain].values).map(|(x, gain)| x * gain).collect())
    };
    let first = Norm::Rms.forward_f64(input);
    let into_attention = gained(&first.rows, ATTENTION_GAIN);
    let qkv = layers.output(QKV, &into_attention, &parameters[QKV]);
    let mixed = attention(&qkv);
    let attended = layers.output(PROJECT, &mixed, &parameters[PROJECT]).plus(input);
    let second = Norm::Rms.forward_f64(&attended);
    let into_mlp = gained(&second.rows, MLP_GAIN);
    let up = layers.output(UP, &into_mlp, &parameters[UP]);
    let hidden = up.map(|x| Activation::Gelu.eval_f64(x));
    let output = layers.output(DOWN, &hidden, &parameters[DOWN]).plus(&attended);
    let gradients = gradient.map(|gradient| {
        let grad_down = layers.grad_weight(DOWN, gradient, &hidden);
        let slope = up.map(|x| derivatives::derivative_f64(Activation::Gelu, x));
        let up =
            layers.grad_input(DOWN, gradient, &parameters[DOWN]).zip_map(&slope, |gradient, slope| gradient * slope);
        let grad_up = layers.grad_weight(UP, &up, &into_mlp);
        let into_mlp = layers.grad_input(UP, &up, &parameters[UP]);
        let grad_second = into_mlp.zip_map(&second.rows, |gradient, x| gradient * x).column_sums();
        let attended = gradient.plus(&Norm::Rms.backward_f64(&second, &gained(&into_mlp, MLP_GAIN)));
        let grad_project = layers.grad_weight(PROJECT, &attended, &mixed);
        let qkv = attention_backward(&qkv, &layers.grad_input(PROJECT, &attended, &parameters[PROJECT]));
        let grad_qkv = layers.grad_weight(QKV, &qkv, &into_attention);
        let into_attention = layers.grad_input(QKV, &qkv, &parameters[QKV]);
        let grad_first = into_attention.zip_map(&first.rows, |gradient, x| gradient * x).column_sums();
        let input = attended.plus(&Norm::Rms.backward_f64(&first, &gained(&into_attention, ATTENTION_GAIN)));
        (input, vec![grad_qkv, grad_project, grad_up, grad_down, grad_first, grad_second])
    });
    ReferencePass { output, gradients }
}

/// Single head of a sequence. `qkv` holds queries, keys and values of its tokens, three rows of `k` elements per token.
struct AttentionHead<'a> {
    qkv: &'a [f64],
    k: usize,
    head: usize,
}

impl AttentionHead<'_> {
    const QUERIES: usize = 0;
    const KEYS: usize = 1;
    const VALUES: usize = 2;

    fn width(&self) -> usize {
        self.k / HEADS as usize
    }

    /// Range of this head in a matrix with `parts` rows of k elements per token.
    fn range(&self, token: usize, part: usize, parts: usize) -> std::ops::Range<usize> {
        let start = token * parts * self.k + part * self.k + self.head * self.width();
        start..start + self.width()
    }

    fn part(&self, token: usize, part: usize) -> &[f64] {
        &self.qkv[self.range(token, part, 3)]
    }

    /// Softmax weights of a query over all tokens.
    fn weights(&self, token: usize) -> Vec<f64> {
        let root = (self.width() as f64).sqrt();
        let query = self.part(token, Self::QUERIES);
        let scores: Vec<f64> = tokens().map(|other| dot(query, self.part(other, Self::KEYS)) / root).collect();
        let max_score = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exponentials: Vec<f64> = scores.iter().map(|score| (score - max_score).exp()).collect();
        let sum: f64 = exponentials.iter().sum();
        exponentials.iter().map(|exponential| exponential / sum).collect()
    }
}

fn tokens() -> std::ops::Range<usize> {
    0..TOKENS as usize
}

fn add_scaled(to: &mut [f64], times: f64, row: &[f64]) {
    to.iter_mut().zip(row).for_each(|(to, value)| *to += times * value);
}

/// Calls `of` for each sequence and head with its queries, keys and values and the rows of the result.
fn map_heads(qkv: &MatrixF64, cols: usize, of: impl Fn(usize, &AttentionHead, &mut [f64]) + Sync) -> MatrixF64 {
    let (k, tokens) = (qkv.cols / 3, TOKENS as usize);
    let mut result = MatrixF64::zeros(qkv.row_count(), cols);
    let sequences = result.values.par_chunks_mut(tokens * cols).zip(qkv.values.par_chunks(tokens * qkv.cols));
    sequences.enumerate().for_each(|(sequence, (rows, qkv))| {
        (0..HEADS as usize).for_each(|head| of(sequence, &AttentionHead { qkv, k, head }, rows));
    });
    result
}

/// Attention output of all heads.
fn attention(qkv: &MatrixF64) -> MatrixF64 {
    map_heads(qkv, qkv.cols / 3, |_, head, mixed| {
        for token in tokens() {
            let range = head.range(token, 0, 1);
            for (other, weight) in head.weights(token).into_iter().enumerate() {
                add_scaled(&mut mixed[range.clone()], weight, head.part(other, AttentionHead::VALUES));
            }
        }
    })
}

/// Gradients of queries, keys and values, given the gradient of the attention output.
fn attention_backward(qkv: &MatrixF64, gradient: &MatrixF64) -> MatrixF64 {
    let sequence_len = TOKENS as usize * gradient.cols;
    map_heads(qkv, qkv.cols, |sequence, head, grad_qkv| {
        let gradient = &gradient.values[sequence * sequence_len..][..sequence_len];
        let root = (head.width() as f64).sqrt();
        for token in tokens() {
            let (weights, gradient) = (head.weights(token), &gradient[head.range(token, 0, 1)]);
            let grad_shares: Vec<f64> =
                tokens().map(|other| dot(gradient, head.part(other, AttentionHead::VALUES))).collect();
            let level = dot(&weights, &grad_shares);
            for other in tokens() {
                let score = weights[other] * (grad_shares[other] - level) / root;
                add_scaled(&mut grad_qkv[head.range(other, AttentionHead::VALUES, 3)], weights[other], gradient);
                add_scaled(
                    &mut grad_qkv[head.range(token, AttentionHead::QUERIES, 3)],
                    score,
                    head.part(other, AttentionHead::KEYS),
                );
                add_scaled(
                    &mut grad_qkv[head.range(other, AttentionHead::KEYS, 3)],
                    score,
                    head.part(token, AttentionHead::QUERIES),
                );
            }
        }
    })
}
