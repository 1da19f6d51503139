//! `transformer_block`: pre-norm attention and MLP with residuals, eight heads, no masks, no biases.
//!
//! The input is a batch of `m` sequences of 16 tokens with `k` features; `n` plays no part. Norms run in f32 with unit
//! weights, attention is written out, GELU uses the error function.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;
mod sizes;

pub use sizes::{HEADS, TOKENS};

use crate::registry::table::Zoo;
use crate::{Definition, ExactLinear, Layout, Matrix, Sample, ZooError};
use calorimeter_shapes::Shape;

/// Operations of its products that can be counted.
const MOST: u128 = 1 << 60;

/// A transformer block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformerBlock;

/// Registers it with the ways to run it.
pub(super) fn register(zoo: &Zoo) {
    zoo.models([TransformerBlock]).burn().cube().native();
}

impl Definition for TransformerBlock {
    fn name(&self) -> &'static str {
        "transformer_block"
    }

    fn about(&self) -> &'static str {
        "RMS norm, attention with 8 heads, RMS norm, MLP with GELU; m sequences of 16 tokens, n unused"
    }

    fn check(&self, shape: Shape) -> Result<(), ZooError> {
        let [m, tokens, k] = [shape.m(), TOKENS, shape.k()].map(u128::from);
        if 24 * m * tokens * k * k > MOST {
            return Err(ZooError::more_than_any_machine("transformer_block", &shape.into()));
        }
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

    // No sequence knows of another.
    fn rows_together(&self) -> usize {
        TOKENS as usize
    }

    fn sample(&self, shape: Shape) -> Sample {
        // A whole sequence is needed to compute any of its tokens; two of them, the first and the last, are enough.
        let (m, tokens, k) = (shape.m() as usize, TOKENS as usize, shape.k() as usize);
        let last = (m > 1 && k <= 8192).then_some(m - 1);
        let rows = [0].into_iter().chain(last).flat_map(|b| b * tokens..(b + 1) * tokens).collect();
        Sample { rows, cols: (0..k).collect() }
    }

    fn reference(&self, shape: Shape, input: &Matrix, linears: &[ExactLinear], sample: &Sample) -> Vec<f64> {
        reference::of(shape.k() as usize, input, linears, sample)
    }
}
