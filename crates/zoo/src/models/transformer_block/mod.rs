//! `transformer_block`: pre-norm attention and MLP with residuals, eight heads, no masks, no biases.
//!
//! The input is a batch of `m` sequences of 16 tokens with `k` features; `n` plays no part. Norms run in f32 with unit
//! weights, attention is written out, GELU uses the error function.

use crate::normalise::{in_f32, rms_norm, rms_norm_exact};
use crate::{Activation, Definition, ExactLinear, Forward, Layout, Matrix, Sample, ZooError};
use burn::tensor::{Tensor, activation::softmax, backend::Backend};
use calorimeter_recipes::Linear;
use calorimeter_shapes::Shape;
use std::fmt;

/// Tokens of each sequence.
pub const TOKENS: u64 = 16;
/// Attention heads.
pub const HEADS: u64 = 8;

/// A transformer block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransformerBlock;

impl fmt::Display for TransformerBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("transformer_block")
    }
}

impl Definition for TransformerBlock {
    const ABOUT: &'static str =
        "RMS norm, attention with 8 heads, RMS norm, MLP with GELU; m sequences of 16 tokens, n unused";

    fn names() -> Vec<String> {
        vec!["transformer_block".into()]
    }

    fn parse(name: &str) -> Option<Self> {
        (name == "transformer_block").then_some(Self)
    }

    fn check(&self, shape: Shape) -> Result<(), ZooError> {
        if shape.k().is_multiple_of(HEADS) {
            return Ok(());
        }
        let k = shape.k();
        Err(ZooError::Unsupported(format!("transformer_block needs k to be a multiple of its {HEADS} heads; k is {k}")))
    }

    fn layout(&self, shape: Shape) -> Layout {
        let (rows, k) = (shape.m() * TOKENS, shape.k());
        let linears = vec![(3 * k, k), (k, k), (4 * k, k), (k, 4 * k)];
        // The widest moment: the MLP's hidden layer before and after its activation, beside the residual.
        Layout { input: (rows, k), output: (rows, k), linears, intermediate: rows * k * 10 }
    }

    fn flops(&self, shape: Shape) -> u64 {
        let (rows, k) = (shape.m() * TOKENS, shape.k());
        2 * rows * 12 * k * k + 4 * rows * TOKENS * k
    }

    fn roundings(&self) -> u32 {
        14
    }

    fn forward<B: Backend>(&self, shape: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B> {
        let (batch, tokens, heads) = (shape.m() as usize, TOKENS as usize, HEADS as usize);
        let k = shape.k() as usize;
        let head = k / heads;
        let device = input.device();
        let ones = || Tensor::<B, 2>::ones([1, k], (&device, input.dtype()));
        let (first, second) = (ones(), ones());
        Box::new(move || {
            let [qkv, project, up, down] = &linears[..] else { unreachable!("the layout has four linear layers") };
            let x = in_f32(input.clone(), rms_norm) * first.clone();
            // [batch, tokens, (q k v), heads, head] -> (q k v), batch, heads, tokens, head
            let split = qkv.forward(x).reshape([batch, tokens, 3, heads, head]).permute([2, 0, 3, 1, 4]);
            let part = |i: usize| split.clone().slice_dim(0, i..i + 1).reshape([batch, heads, tokens, head]);
            let scores = part(0).matmul(part(1).transpose()) / (head as f64).sqrt();
            let mixed = softmax(scores, 3).matmul(part(2));
            let mixed = mixed.permute([0, 2, 1, 3]).reshape([batch * tokens, k]);
            let x = project.forward(mixed) + input.clone();
            let hidden = Activation::Gelu.apply(up.forward(in_f32(x.clone(), rms_norm) * second.clone()));
            down.forward(hidden) + x
        })
    }

    fn sample(&self, shape: Shape) -> Sample {
        // A whole sequence is needed to compute any of its tokens; two of them, the first and the last, are enough.
        let (m, tokens, k) = (shape.m() as usize, TOKENS as usize, shape.k() as usize);
        let last = (m > 1 && k <= 8192).then_some(m - 1);
        let rows = [0].into_iter().chain(last).flat_map(|b| b * tokens..(b + 1) * tokens).collect();
        Sample { rows, cols: (0..k).collect() }
    }

    fn reference(&self, shape: Shape, input: &Matrix, linears: &[ExactLinear], sample: &Sample) -> Vec<f64> {
        let k = shape.k() as usize;
        let sequences = sample.rows.chunks(TOKENS as usize);
        sequences.flat_map(|rows| sequence(rows.iter().flat_map(|&r| input.row(r)).copied(), k, linears)).collect()
    }
}

/// One sequence through the block in double precision.
fn sequence(input: impl Iterator<Item = f32>, k: usize, linears: &[ExactLinear]) -> Vec<f64> {
    let input: Vec<f64> = input.map(f64::from).collect();
    let (tokens, head) = (TOKENS as usize, k / HEADS as usize);
    let norm = |x: &[f64]| -> Vec<f64> { x.chunks(k).flat_map(rms_norm_exact).collect() };
    let qkv = linears[0].dense(&norm(&input));
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
    let x: Vec<f64> = linears[1].dense(&mixed).iter().zip(&input).map(|(a, b)| a + b).collect();
    let hidden: Vec<f64> = linears[2].dense(&norm(&x)).into_iter().map(|h| Activation::Gelu.exact(h)).collect();
    linears[3].dense(&hidden).iter().zip(&x).map(|(a, b)| a + b).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
