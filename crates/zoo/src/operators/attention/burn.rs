//! Attention by burn's operations: materialized scores, mask, softmax and the matmul with V.

use super::{Attention, AttentionKind, AttentionSize, AttentionStage};
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::activation::softmax;
use burn::tensor::{Bool, DType, Tensor, backend::Backend};
use calorimeter_recipes::FloatType;

impl BurnPass for Attention {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let AttentionSize { batch, heads, sequence, width } = AttentionSize::new(self.kind, spec);
        let [batch, heads, sequence, width] = [batch, heads, sequence, width].map(|axis| axis as usize);
        let (rows, root, dtype) = (batch * heads * sequence, (width as f64).sqrt(), spec.dtype().burn());
        let (stage, in_f32) = (self.stage, self.kind == AttentionKind::MultiHeadF32Softmax);
        let inputs: Vec<Tensor<B, 4>> =
            inputs.into_iter().map(|input| input.float().reshape([batch, heads, sequence, width])).collect();
        // True where a key is hidden. One mask for all heads, created once.
        let mask = self.causal.then(|| {
            let mask = Tensor::<B, 2, Bool>::tril_mask([sequence, sequence], 0, &inputs[0].device());
            mask.unsqueeze::<4>().expand([batch, heads, sequence, sequence])
        });
        Box::new(move || {
            let scores = inputs[0].clone().matmul(inputs[1].clone().transpose());
            let scores = if in_f32 { scores.cast(DType::F32).div_scalar(root) } else { scores * (1.0 / root) };
            if stage == AttentionStage::Scores {
                return vec![TensorValue::Float(scores.reshape([rows, sequence]))];
            }
            let visible = match &mask {
                Some(mask) => scores.mask_fill(mask.clone(), f32::NEG_INFINITY),
                None => scores,
            };
            let weights = softmax(visible, 3);
            vec![TensorValue::Float(match stage {
                AttentionStage::Output if in_f32 => {
                    weights.cast(dtype).matmul(inputs[2].clone()).reshape([rows, width])
                }
                AttentionStage::Output => weights.matmul(inputs[2].clone()).reshape([rows, width]),
                _ => weights.reshape([rows, sequence]),
            })]
        })
    }
}
