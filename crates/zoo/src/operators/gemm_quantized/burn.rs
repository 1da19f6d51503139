//! Quantized GEMM by burn's operations: quantize-dequantize, then a float matmul.

use super::{GemmQuantized, Scaling, Shared};
use crate::operators::absmax::{self, FIXED, magnitudes, powers, quotients, scales};
use crate::operators::minifloat::nearest;
use crate::operators::product::size;
use crate::{BurnPass, Pass, Spec, Value};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use calorimeter_recipes::{Element, FloatType};

impl BurnPass for GemmQuantized {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let (m, k, n) = size(spec);
        let along_k = self.along_k(k) as usize;
        let (m, blocks, n) = (m as usize, k as usize / along_k, n as usize);
        let [a, b] = inputs.try_into().map(|inputs: [Value<B>; 2]| inputs.map(Value::float)).expect("two inputs");
        let gemm = *self;
        Box::new(move || {
            let (a, scales_of_a) = gemm.quantized(&a, [m, blocks, along_k], &[2]);
            let (b, scales_of_b) = match gemm.0 {
                Shared::Block => (gemm.quantized(&b, [blocks, 128, n / 128, 128], &[1, 3]).0, None),
                _ => gemm.quantized(&b, [blocks, along_k, n], &[1]),
            };
            let mut y = a.matmul(b);
            if let (Shared::LineDequantized, Some(rows), Some(cols)) = (gemm.0, scales_of_a, scales_of_b) {
                y = y * (rows.reshape([m, 1]) * cols.reshape([1, n]));
            }
            vec![Value::Float(y.cast(DType::BF16))]
        })
    }
}

impl GemmQuantized {
    /// Quantizes an operand in blocks that span the dimensions `block` of `shape`. Returns the scales if they are
    /// applied after the matmul.
    fn quantized<B: Backend, const D: usize>(
        self,
        x: &Tensor<B, 2>,
        shape: [usize; D],
        block: &[usize],
    ) -> (Tensor<B, 2>, Option<Tensor<B, D>>) {
        let (size, multiplied) = (x.dims(), self.multiplied().burn());
        let x = x.clone().reshape(shape);
        let (values, output_scales) = match self {
            Self(shared, Scaling::Static) => {
                let scale = absmax::scale(FIXED, Element::E4m3, self.steps());
                let values = nearest(x.cast(DType::F32).div_scalar(scale));
                (if shared == Shared::Line { values } else { values.mul_scalar(scale) }, None)
            }
            Self(shared, Scaling::Dynamic) => {
                let amax = magnitudes(&x, block);
                let scales = if shared == Shared::Micro { powers(amax) } else { scales(amax, self.steps()) };
                let values = nearest(quotients(x, scales.clone(), self.steps()));
                match shared {
                    Shared::Line | Shared::LineDequantized => (values, Some(scales)),
                    Shared::Block | Shared::Micro => (values * scales, None),
                }
            }
        };
        (values.cast(multiplied).reshape(size), output_scales)
    }
}
