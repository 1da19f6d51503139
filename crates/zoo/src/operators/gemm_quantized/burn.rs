//! Quantized GEMM by burn's operations: quantize-dequantize, then a float matmul.

use super::{Fp8Granularity, GemmQuantized, ScaleMode};
use crate::operators::amax_scaling::{self, STATIC_AMAX, amax_over, mx_scales, quotients, scales};
use crate::operators::e4m3::round_to_e4m3;
use crate::operators::matmul::size;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use calorimeter_recipes::{Element, FloatType};

impl BurnPass for GemmQuantized {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let (m, k, n) = size(spec);
        let along_k = self.block_k(k) as usize;
        let (m, blocks, n) = (m as usize, k as usize / along_k, n as usize);
        let [a, b] =
            inputs.try_into().map(|inputs: [TensorValue<B>; 2]| inputs.map(TensorValue::float)).expect("two inputs");
        let gemm = *self;
        Box::new(move || {
            let (a, scales_of_a) = gemm.quantize_operand(&a, [m, blocks, along_k], &[2]);
            let (b, scales_of_b) = match gemm.0 {
                Fp8Granularity::Block128 => (gemm.quantize_operand(&b, [blocks, 128, n / 128, 128], &[1, 3]).0, None),
                _ => gemm.quantize_operand(&b, [blocks, along_k, n], &[1]),
            };
            let mut y = a.matmul(b);
            if let (Fp8Granularity::RowColumnDequantized, Some(rows), Some(cols)) = (gemm.0, scales_of_a, scales_of_b) {
                y = y * (rows.reshape([m, 1]) * cols.reshape([1, n]));
            }
            vec![TensorValue::Float(y.cast(DType::BF16))]
        })
    }
}

impl GemmQuantized {
    /// Quantizes an operand in blocks that span the dimensions `block` of `shape`. Returns the scales if they are
    /// applied after the matmul.
    fn quantize_operand<B: Backend, const D: usize>(
        self,
        x: &Tensor<B, 2>,
        shape: [usize; D],
        block: &[usize],
    ) -> (Tensor<B, 2>, Option<Tensor<B, D>>) {
        let (size, multiplied) = (x.dims(), self.burn_dtype().burn());
        let x = x.clone().reshape(shape);
        let (values, output_scales) = match self {
            Self(shared, ScaleMode::Static) => {
                let scale = amax_scaling::scale(STATIC_AMAX, Element::E4m3, self.precision());
                let values = round_to_e4m3(x.cast(DType::F32).div_scalar(scale));
                (if shared == Fp8Granularity::RowColumn { values } else { values.mul_scalar(scale) }, None)
            }
            Self(shared, ScaleMode::Dynamic) => {
                let amax = amax_over(&x, block);
                let scales =
                    if shared == Fp8Granularity::Mx32 { mx_scales(amax) } else { scales(amax, self.precision()) };
                let values = round_to_e4m3(quotients(x, scales.clone(), self.precision()));
                match shared {
                    Fp8Granularity::RowColumn | Fp8Granularity::RowColumnDequantized => (values, Some(scales)),
                    Fp8Granularity::Block128 | Fp8Granularity::Mx32 => (values * scales, None),
                }
            }
        };
        (values.cast(multiplied).reshape(size), output_scales)
    }
}
