//! SwiGLU of two halves and its gradient by burn's operations, in f32.

use super::HalvedSwiglu;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, activation};
use calorimeter_recipes::FloatType;

impl BurnPass for HalvedSwiglu {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let half = spec.axis("n") as usize / 2;
        let inputs: Vec<_> = inputs.into_iter().map(TensorValue::float).collect();
        let direction = *self;
        Box::new(move || {
            let x = inputs[0].clone();
            let a = x.clone().narrow(1, 0, half).cast(DType::F32);
            let b = x.narrow(1, half, half).cast(DType::F32);
            let gate = activation::sigmoid(a.clone());
            let silu = a * gate.clone();
            vec![TensorValue::Float(match direction {
                Self::Forward => (silu * b).cast(dtype),
                Self::Backward => {
                    let dy = inputs[1].clone().cast(DType::F32);
                    let slope = gate.clone() + silu.clone() * (1.0 - gate);
                    let (da, db): (Tensor<B, 2>, Tensor<B, 2>) = (dy.clone() * b * slope, dy * silu);
                    Tensor::cat(vec![da.cast(dtype), db.cast(dtype)], 1)
                }
            })]
        })
    }
}
