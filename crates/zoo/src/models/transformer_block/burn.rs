//! `transformer_block` by burn's operations.

use super::{HEADS, TOKENS, TransformerBlockModel};
use crate::normalize::{compute_in_f32, rms_norm};
use crate::{Activate, Activation, BurnModel, Forward};
use burn::tensor::{Tensor, activation::softmax, backend::Backend};
use calorimeter_recipes::Linear;
use calorimeter_shapes::Shape;

impl BurnModel for TransformerBlockModel {
    fn forward<B: Backend>(&self, shape: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B> {
        let (batch, tokens, heads) = (shape.m() as usize, TOKENS as usize, HEADS as usize);
        let k = shape.k() as usize;
        let head = k / heads;
        let device = input.device();
        let ones = || Tensor::<B, 2>::ones([1, k], (&device, input.dtype()));
        let (first, second) = (ones(), ones());
        Box::new(move || {
            let [qkv, project, up, down] = &linears[..] else { unreachable!("the layout has four linear layers") };
            let x = compute_in_f32(input.clone(), rms_norm) * first.clone();
            // [batch, tokens, (q k v), heads, head] -> (q k v), batch, heads, tokens, head
            let split = qkv.forward(x).reshape([batch, tokens, 3, heads, head]).permute([2, 0, 3, 1, 4]);
            let part = |i: usize| split.clone().slice_dim(0, i..i + 1).reshape([batch, heads, tokens, head]);
            let scores = part(0).matmul(part(1).transpose()) / (head as f64).sqrt();
            let mixed = softmax(scores, 3).matmul(part(2));
            let mixed = mixed.permute([0, 2, 1, 3]).reshape([batch * tokens, k]);
            let x = project.forward(mixed) + input.clone();
            let hidden = Activation::Gelu.apply(up.forward(compute_in_f32(x.clone(), rms_norm) * second.clone()));
            down.forward(hidden) + x
        })
    }
}
