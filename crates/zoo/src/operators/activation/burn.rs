//! Activations by burn's operations: computed in f32, rounded once to the dtype of the input.

use super::{ElementwiseActivation, GELU_TANH_CUBIC, GELU_TANH_SLOPE};
use crate::operators::sequences::float_tensors;
use crate::{Activate, Activation, BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use calorimeter_recipes::FloatType;

impl BurnPass for ElementwiseActivation {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let (function, dtype) = (*self, spec.dtype().burn());
        let [x] = float_tensors(inputs);
        Box::new(move || vec![TensorValue::Float(function.apply(x.clone().cast(DType::F32)).cast(dtype))])
    }
}

impl ElementwiseActivation {
    fn apply<B: Backend>(self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        match self {
            Self::Gelu => Activation::Gelu.apply(x),
            Self::GeluTanh => {
                // burn's own approximation cubes with a power function, which GPUs do not define for negative bases.
                let cube = x.clone() * x.clone() * x.clone();
                let inner = (x.clone() + cube * GELU_TANH_CUBIC) * GELU_TANH_SLOPE;
                x * (inner.tanh() + 1.0) * 0.5
            }
            Self::Silu => Activation::Silu.apply(x),
        }
    }
}
