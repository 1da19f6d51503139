//! Activations by burn's operations: computed in f32, rounded once to the dtype of the input.

use super::{CUBIC, ElementwiseActivation, SLOPE};
use crate::operators::sequences::floats;
use crate::{Activate, Activation, BurnPass, Pass, Spec, Value};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use calorimeter_recipes::FloatType;

impl BurnPass for ElementwiseActivation {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let (function, dtype) = (*self, spec.dtype().burn());
        let [x] = floats(inputs);
        Box::new(move || vec![Value::Float(function.apply(x.clone().cast(DType::F32)).cast(dtype))])
    }
}

impl ElementwiseActivation {
    fn apply<B: Backend>(self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        match self {
            Self::Gelu => Activation::Gelu.apply(x),
            Self::GeluTanh => {
                // burn's own approximation cubes with a power function, which GPUs do not define for negative bases.
                let cube = x.clone() * x.clone() * x.clone();
                let inner = (x.clone() + cube * CUBIC) * SLOPE;
                x * (inner.tanh() + 1.0) * 0.5
            }
            Self::Silu => Activation::Silu.apply(x),
        }
    }
}
