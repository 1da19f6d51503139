//! Quantization by burn's operations.

use super::Quantization;
use crate::operators::absmax::{self, FIXED, magnitudes, quotients, scales};
use crate::operators::minifloat::encode;
use crate::{BurnPass, Pass, Spec, Value};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use calorimeter_recipes::{Dtype, Element};

impl BurnPass for Quantization {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let [x] = inputs.try_into().map(|inputs: [Value<B>; 1]| inputs.map(Value::float)).expect("one input");
        let ([m, n], device) = (x.dims(), x.device());
        let quantization = *self;
        Box::new(move || {
            let mut x = x.clone();
            if quantization.is_transposed() {
                // A transposed tensor is a view; the reshape copies it.
                x = x.transpose().reshape([n * m]).reshape([n, m]);
            }
            let (quotients, scales) = if quantization.is_static() {
                let scale = absmax::scale(FIXED, Element::E4m3, Dtype::Bf16);
                (x.cast(DType::F32).div_scalar(scale), Tensor::full([1, 1], scale, (&device, DType::F32)))
            } else {
                let scales = scales(magnitudes(&x, &[1]), Dtype::Bf16);
                (quotients(x, scales.clone(), Dtype::Bf16), scales)
            };
            vec![Value::Codes(encode(quotients)), Value::Float(scales)]
        })
    }
}
