//! `transformer_block`: pre-norm attention and MLP with residuals, eight heads, no masks, no biases.
//!
//! The input is a batch of `m` sequences of 16 tokens with `k` features; `n` is unused. RMS norms run in f32 with unit
//! gains, attention is written out as matmuls and a softmax, GELU uses the error function.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;
mod sizes;

pub use sizes::{HEADS, TOKENS};

use crate::registry::table::Zoo;
use crate::{Definition, ExactLinear, Layout, Matrix, OutputSample, ZooError};
use calorimeter_shapes::Shape;

/// Maximum operations of the linear layers, so that counts do not overflow.
const MAX_OPERATIONS: u128 = 1 << 60;

/// Transformer block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformerBlockModel;

/// Registers `transformer_block` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.models([TransformerBlockModel]).burn().cube().native();
}

impl Definition for TransformerBlockModel {
    fn name(&self) -> &'static str {
        "transformer_block"
    }

    fn description(&self) -> &'static str {
        "RMS norm, attention with 8 heads, RMS norm, MLP with GELU; m sequences of 16 tokens, n unused"
    }

    fn check(&self, shape: Shape) -> Result<(), ZooError> {
        let [m, tokens, k] = [shape.m(), TOKENS, shape.k()].map(u128::from);
        if 24 * m * tokens * k * k > MAX_OPERATIONS {
            return Err(ZooError::too_large("transformer_block", &shape.into()));
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
        // Peak: the hidden layer of the MLP before and after its activation, and the residual.
        Layout { input: (rows, k), output: (rows, k), linears, intermediate: rows * k * 10 }
    }

    fn flops(&self, shape: Shape) -> u64 {
        let (rows, k) = (shape.m() * TOKENS, shape.k());
        2 * rows * 12 * k * k + 4 * rows * TOKENS * k
    }

    fn roundings(&self) -> u32 {
        14
    }

    // Sequences are independent.
    fn rows_per_group(&self) -> usize {
        TOKENS as usize
    }

    fn sample(&self, shape: Shape) -> OutputSample {
        // Computing any token requires its whole sequence; the first and the last sequence are sampled.
        let (m, tokens, k) = (shape.m() as usize, TOKENS as usize, shape.k() as usize);
        let last = (m > 1 && k <= 8192).then_some(m - 1);
        let rows = [0].into_iter().chain(last).flat_map(|b| b * tokens..(b + 1) * tokens).collect();
        OutputSample { rows, cols: (0..k).collect() }
    }

    fn reference(&self, shape: Shape, input: &Matrix, linears: &[ExactLinear], sample: &OutputSample) -> Vec<f64> {
        reference::sampled_sequences(shape.k() as usize, input, linears, sample)
    }
}
