//! In double precision.

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
        let of_down = layers.grad_weight(DOWN, gradient, &hidden);
        let slope = up.map(|x| slopes::exact(Activation::Gelu, x));
        let up = layers.grad_input(DOWN, gradient, &parameters[DOWN]).with(&slope, |gradient, slope| gradient * slope);
        let of_up = layers.grad_weight(UP, &up, &into_mlp);
        let into_mlp = layers.grad_input(UP, &up, &parameters[UP]);
        let of_second = into_mlp.with(&second.rows, |gradient, x| gradient * x).summed();
        let attended = gradient.plus(&Norm::Rms.exact_back(&second, &gained(&into_mlp, SECOND)));
        let of_project = layers.grad_weight(PROJECT, &attended, &mixed);
        let qkv = mixed_back(&qkv, &layers.grad_input(PROJECT, &attended, &parameters[PROJECT]));
        let of_qkv = layers.grad_weight(QKV, &qkv, &into_attention);
        let into_attention = layers.grad_input(QKV, &qkv, &parameters[QKV]);
        let of_first = into_attention.with(&first.rows, |gradient, x| gradient * x).summed();
        let input = attended.plus(&Norm::Rms.exact_back(&first, &gained(&into_attention, FIRST)));
        (input, vec![of_qkv, of_project, of_up, of_down, of_first, of_second])
    });
    Exactly { output, gradients }
}

/// One head of a sequence: queries, keys and values of its tokens, each a row of so many numbers.
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

    /// Where the numbers of a token lie in a row of `parts` rows of k.
    fn place(&self, token: usize, part: usize, parts: usize) -> std::ops::Range<usize> {
        let start = token * parts * self.k + part * self.k + self.head * self.width();
        start..start + self.width()
    }

    fn part(&self, token: usize, part: usize) -> &[f64] {
        &self.qkv[self.place(token, part, 3)]
    }

    /// What a token takes of each.
    fn shares(&self, token: usize) -> Vec<f64> {
        let root = (self.width() as f64).sqrt();
        let query = self.part(token, Self::QUERIES);
        let scores: Vec<f64> = tokens().map(|other| dot(query, self.part(other, Self::KEYS)) / root).collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.iter().map(|power| power / sum).collect()
    }
}

fn tokens() -> std::ops::Range<usize> {
    0..TOKENS as usize
}

fn add(to: &mut [f64], times: f64, row: &[f64]) {
    to.iter_mut().zip(row).for_each(|(to, value)| *to += times * value);
}

/// What comes of each sequence, of its rows of queries, keys and values, and of those of a gradient where there is one.
fn by_sequence(qkv: &Rows, cols: usize, of: impl Fn(usize, &Head, &mut [f64]) + Sync) -> Rows {
    let (k, together) = (qkv.cols / 3, TOKENS as usize);
    let mut made = Rows::zeros(qkv.count(), cols);
    let sequences = made.values.par_chunks_mut(together * cols).zip(qkv.values.par_chunks(together * qkv.cols));
    sequences.enumerate().for_each(|(sequence, (made, qkv))| {
        (0..HEADS as usize).for_each(|head| of(sequence, &Head { qkv, k, head }, made));
    });
    made
}

/// What all heads make of values.
fn mixed(qkv: &Rows) -> Rows {
    by_sequence(qkv, qkv.cols / 3, |_, head, mixed| {
        for token in tokens() {
            let place = head.place(token, 0, 1);
            for (other, share) in head.shares(token).into_iter().enumerate() {
                add(&mut mixed[place.clone()], share, head.part(other, Head::VALUES));
            }
        }
    })
}

/// The gradients of queries, keys and values, of that of what they were mixed into.
fn mixed_back(qkv: &Rows, gradient: &Rows) -> Rows {
    let together = TOKENS as usize * gradient.cols;
    by_sequence(qkv, qkv.cols, |sequence, head, made| {
        let gradient = &gradient.values[sequence * together..][..together];
        let root = (head.width() as f64).sqrt();
        for token in tokens() {
            let (shares, gradient) = (head.shares(token), &gradient[head.place(token, 0, 1)]);
            let of_shares: Vec<f64> = tokens().map(|other| dot(gradient, head.part(other, Head::VALUES))).collect();
            let level = dot(&shares, &of_shares);
            for other in tokens() {
                let score = shares[other] * (of_shares[other] - level) / root;
                add(&mut made[head.place(other, Head::VALUES, 3)], shares[other], gradient);
                add(&mut made[head.place(token, Head::QUERIES, 3)], score, head.part(other, Head::KEYS));
                add(&mut made[head.place(other, Head::KEYS, 3)], score, head.part(token, Head::QUERIES));
            }
        }
    })
}
