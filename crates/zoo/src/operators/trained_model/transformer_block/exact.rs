//! Forward and backward pass of `transformer_block` in double precision.

use super::parameters::{DOWN, FIRST, PROJECT, QKV, SECOND, UP};
use crate::models::transformer_block::{HEADS, TOKENS};
use crate::operators::trained_model::architecture::Exactly;
use crate::operators::trained_model::exact_layers::ExactLayers;
use crate::operators::trained_model::norms::Norm;
use crate::operators::trained_model::rows::{Rows, dot};
use crate::operators::trained_model::slopes;
use crate::{Activate, Activation};
use rayon::prelude::*;

pub fn of(layers: &dyn ExactLayers, input: &Rows, parameters: &[Rows], gradient: Option<&Rows>) -> Exactly {
    let gained = |rows: &Rows, gain: usize| {
        rows.by_row(|_, row| row.iter().zip(&parameters[gain].values).map(|(x, gain)| x * gain).collect())
    };
    let first = Norm::Rms.exact(input);
    let into_attention = gained(&first.rows, FIRST);
    let qkv = layers.output(QKV, &into_attention, &parameters[QKV]);
    let mixed = mixed(&qkv);
    let attended = layers.output(PROJECT, &mixed, &parameters[PROJECT]).plus(input);
    let second = Norm::Rms.exact(&attended);
    let into_mlp = gained(&second.rows, SECOND);
    let up = layers.output(UP, &into_mlp, &parameters[UP]);
    let hidden = up.map(|x| Activation::Gelu.exact(x));
    let output = layers.output(DOWN, &hidden, &parameters[DOWN]).plus(&attended);
    let gradients = gradient.map(|gradient| {
        let grad_down = layers.grad_weight(DOWN, gradient, &hidden);
        let slope = up.map(|x| slopes::exact(Activation::Gelu, x));
        let up = layers.grad_input(DOWN, gradient, &parameters[DOWN]).with(&slope, |gradient, slope| gradient * slope);
        let grad_up = layers.grad_weight(UP, &up, &into_mlp);
        let into_mlp = layers.grad_input(UP, &up, &parameters[UP]);
        let grad_second = into_mlp.with(&second.rows, |gradient, x| gradient * x).summed();
        let attended = gradient.plus(&Norm::Rms.exact_back(&second, &gained(&into_mlp, SECOND)));
        let grad_project = layers.grad_weight(PROJECT, &attended, &mixed);
        let qkv = mixed_back(&qkv, &layers.grad_input(PROJECT, &attended, &parameters[PROJECT]));
        let grad_qkv = layers.grad_weight(QKV, &qkv, &into_attention);
        let into_attention = layers.grad_input(QKV, &qkv, &parameters[QKV]);
        let grad_first = into_attention.with(&first.rows, |gradient, x| gradient * x).summed();
        let input = attended.plus(&Norm::Rms.exact_back(&first, &gained(&into_attention, FIRST)));
        (input, vec![grad_qkv, grad_project, grad_up, grad_down, grad_first, grad_second])
    });
    Exactly { output, gradients }
}

/// Single head of a sequence. `qkv` holds queries, keys and values of its tokens, three rows of `k` elements per token.
struct Head<'a> {
    qkv: &'a [f64],
    k: usize,
    head: usize,
}

impl Head<'_> {
    const QUERIES: usize = 0;
    const KEYS: usize = 1;
    const VALUES: usize = 2;

    fn width(&self) -> usize {
        self.k / HEADS as usize
    }

    /// Range of this head in a matrix with `parts` rows of k elements per token.
    fn place(&self, token: usize, part: usize, parts: usize) -> std::ops::Range<usize> {
        let start = token * parts * self.k + part * self.k + self.head * self.width();
        start..start + self.width()
    }

    fn part(&self, token: usize, part: usize) -> &[f64] {
        &self.qkv[self.place(token, part, 3)]
    }

    /// Softmax weights of a query over all tokens.
    fn shares(&self, token: usize) -> Vec<f64> {
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

fn add(to: &mut [f64], times: f64, row: &[f64]) {
    to.iter_mut().zip(row).for_each(|(to, value)| *to += times * value);
}

/// Calls `of` for each sequence and head with its queries, keys and values and the rows of the result.
fn by_sequence(qkv: &Rows, cols: usize, of: impl Fn(usize, &Head, &mut [f64]) + Sync) -> Rows {
    let (k, tokens) = (qkv.cols / 3, TOKENS as usize);
    let mut result = Rows::zeros(qkv.count(), cols);
    let sequences = result.values.par_chunks_mut(tokens * cols).zip(qkv.values.par_chunks(tokens * qkv.cols));
    sequences.enumerate().for_each(|(sequence, (rows, qkv))| {
        (0..HEADS as usize).for_each(|head| of(sequence, &Head { qkv, k, head }, rows));
    });
    result
}

/// Attention output of all heads.
fn mixed(qkv: &Rows) -> Rows {
    by_sequence(qkv, qkv.cols / 3, |_, head, mixed| {
        for token in tokens() {
            let range = head.place(token, 0, 1);
            for (other, weight) in head.shares(token).into_iter().enumerate() {
                add(&mut mixed[range.clone()], weight, head.part(other, Head::VALUES));
            }
        }
    })
}

/// Gradients of queries, keys and values, given the gradient of the attention output.
fn mixed_back(qkv: &Rows, gradient: &Rows) -> Rows {
    let sequence_len = TOKENS as usize * gradient.cols;
    by_sequence(qkv, qkv.cols, |sequence, head, grad_qkv| {
        let gradient = &gradient.values[sequence * sequence_len..][..sequence_len];
        let root = (head.width() as f64).sqrt();
        for token in tokens() {
            let (weights, gradient) = (head.shares(token), &gradient[head.place(token, 0, 1)]);
            let grad_shares: Vec<f64> = tokens().map(|other| dot(gradient, head.part(other, Head::VALUES))).collect();
            let level = dot(&weights, &grad_shares);
            for other in tokens() {
                let score = weights[other] * (grad_shares[other] - level) / root;
                add(&mut grad_qkv[head.place(other, Head::VALUES, 3)], weights[other], gradient);
                add(&mut grad_qkv[head.place(token, Head::QUERIES, 3)], score, head.part(other, Head::KEYS));
                add(&mut grad_qkv[head.place(other, Head::KEYS, 3)], score, head.part(token, Head::QUERIES));
            }
        }
    })
}
