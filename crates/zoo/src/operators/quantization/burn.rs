//! Quantization by burn's operations.

use super::Quantization;
use crate::operators::amax_scaling::{self, STATIC_AMAX, amax_over, quotients, scales};
use crate::operators::e4m3::encode;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use calorimeter_recipes::{Dtype, Element};

impl BurnPass for Quantization {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let [x] =
            inputs.try_into().map(|inputs: [TensorValue<B>; 1]| inputs.map(TensorValue::float)).expect("one input");
        let ([m, n], device) = (x.dims(), x.device());
        let quantization = *self;
        Box::new(move || {
            let mut x = x.clone();
            if quantization.is_transposed() {
                // A transposed tensor is a view; the reshape copies it.
                x = x.transpose().reshape([n * m]).reshape([n, m]);
            }
            let (quotients, scales) = if quantization.is_static() {
                let scale = amax_scaling::scale(STATIC_AMAX, Element::E4m3, Dtype::Bf16);
                (x.cast(DType::F32).div_scalar(scale), Tensor::full([1, 1], scale, (&device, DType::F32)))
            } else {
                let scales = scales(amax_over(&x, &[1]), Dtype::Bf16);
                (quotients(x, scales.clone(), Dtype::Bf16), scales)
            };
            vec![TensorValue::Int(encode(quotients)), TensorValue::Float(scales)]
        })
    }
}
