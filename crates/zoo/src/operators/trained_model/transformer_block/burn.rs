//! Forward and backward pass of `transformer_block` by burn's operations.

use super::parameters::{ATTENTION_GAIN, DOWN, MLP_GAIN, PROJECT, QKV, UP};
use super::saved::TransformerBlockSaved;
use crate::Activation;
use crate::models::transformer_block::{HEADS, TOKENS};
use crate::operators::trained_model::architecture::ModelGradients;
use crate::operators::trained_model::derivatives;
use crate::operators::trained_model::layers::TrainedLayers;
use crate::operators::trained_model::norms::Norm;
use burn::tensor::{Tensor, activation::softmax, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;

const SEQUENCE_TOKENS: usize = TOKENS as usize;
const HEAD_COUNT: usize = HEADS as usize;

pub(super) fn forward<B: Float8Backend>(
    layers: TrainedLayers,
    input: Tensor<B, 2>,
    parameters: &[Tensor<B, 2>],
) -> (Tensor<B, 2>, TransformerBlockSaved<B>) {
    let [rows, k] = input.dims();
    let (batch, head) = (rows / SEQUENCE_TOKENS, k / HEAD_COUNT);
    let first = Norm::Rms.forward(input.clone());
    let into_attention = first.rows.clone() * parameters[ATTENTION_GAIN].clone();
    // [batch, tokens, (q k v), heads, head] -> (q k v), batch, heads, tokens, head
    let qkv = layers.output(into_attention.clone(), &parameters[QKV]);
    let qkv = qkv.reshape([batch, SEQUENCE_TOKENS, 3, HEAD_COUNT, head]).permute([2, 0, 3, 1, 4]);
    let parts = [0, 1, 2]
        .map(|part| qkv.clone().slice_dim(0, part..part + 1).reshape([batch, HEAD_COUNT, SEQUENCE_TOKENS, head]));
    let [queries, keys, values] = parts.clone();
    let shares = softmax(queries.matmul(keys.transpose()) / (head as f64).sqrt(), 3);
    let mixed = merge_heads(shares.clone().matmul(values), k);
    let attended = layers.output(mixed.clone(), &parameters[PROJECT]) + input;
    let second = Norm::Rms.forward(attended.clone());
    let into_mlp = second.rows.clone() * parameters[MLP_GAIN].clone();
    let up = layers.output(into_mlp.clone(), &parameters[UP]);
    let hidden = derivatives::activate(Activation::Gelu, up.clone());
    let output = layers.output(hidden.clone(), &parameters[DOWN]) + attended;
    (output, TransformerBlockSaved { first, into_attention, parts, shares, mixed, second, into_mlp, up, hidden })
}

pub(super) fn backward<B: QuantBackend + Float8Backend>(
    layers: TrainedLayers,
    saved: TransformerBlockSaved<B>,
    parameters: &[Tensor<B, 2>],
    gradient: Tensor<B, 2>,
) -> ModelGradients<B> {
    let TransformerBlockSaved { first, into_attention, parts, shares, mixed, second, into_mlp, up, hidden } = saved;
    let grad_down = layers.grad_weight(gradient.clone(), hidden);
    let up = derivatives::backward(Activation::Gelu, up, layers.grad_input(gradient.clone(), &parameters[DOWN]));
    let grad_up = layers.grad_weight(up.clone(), into_mlp);
    let into_mlp = layers.grad_input(up, &parameters[UP]);
    let grad_second = (into_mlp.clone() * second.rows.clone()).sum_dim(0);
    let attended = gradient + Norm::Rms.backward(second, into_mlp * parameters[MLP_GAIN].clone());
    let grad_project = layers.grad_weight(attended.clone(), mixed);
    let qkv = attention_backward(parts, shares, layers.grad_input(attended.clone(), &parameters[PROJECT]));
    let grad_qkv = layers.grad_weight(qkv.clone(), into_attention);
    let into_attention = layers.grad_input(qkv, &parameters[QKV]);
    let grad_first = (into_attention.clone() * first.rows.clone()).sum_dim(0);
    let input = attended + Norm::Rms.backward(first, into_attention * parameters[ATTENTION_GAIN].clone());
    ModelGradients { input, parameters: vec![grad_qkv, grad_project, grad_up, grad_down, grad_first, grad_second] }
}

/// Gradients of queries, keys and values, concatenated along the columns, given the gradient of the attention output.
fn attention_backward<B: Backend>(
    [queries, keys, values]: [Tensor<B, 4>; 3],
    shares: Tensor<B, 4>,
    gradient: Tensor<B, 2>,
) -> Tensor<B, 2> {
    let [batch, heads, tokens, head] = queries.dims();
    let k = heads * head;
    let gradient = gradient.reshape([batch, tokens, heads, head]).permute([0, 2, 1, 3]);
    let grad_values = shares.clone().transpose().matmul(gradient.clone());
    let grad_shares = gradient.matmul(values.transpose());
    let level = (grad_shares.clone() * shares.clone()).sum_dim(3);
    let scores = shares * (grad_shares - level) / (head as f64).sqrt();
    let grad_queries = scores.clone().matmul(keys);
    let grad_keys = scores.transpose().matmul(queries);
    let parts = [grad_queries, grad_keys, grad_values].map(|part| part.reshape([1, batch, heads, tokens, head]));
    Tensor::cat(parts.into(), 0).permute([1, 3, 0, 2, 4]).reshape([batch * tokens, 3 * k])
}

/// Concatenates the heads of each token: `[batch, heads, tokens, head]` to `[batch * tokens, k]`.
fn merge_heads<B: Backend>(mixed: Tensor<B, 4>, k: usize) -> Tensor<B, 2> {
    let [batch, _, tokens, _] = mixed.dims();
    mixed.permute([0, 2, 1, 3]).reshape([batch * tokens, k])
}
