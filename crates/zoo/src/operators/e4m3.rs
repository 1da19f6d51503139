//! e4m3 rounding and encoding by burn's float operations: burn has neither the dtype nor bit casts.

use crate::TensorValue;
use burn::tensor::{DType, Int, IntDType, Tensor, TensorData, backend::Backend};
use calorimeter_recipes::{Element, ElementCodec};
use std::f32::consts::{LN_2, LOG2_E};

/// Explicit bits of the mantissa.
const MANTISSA_BITS: f32 = 3.0;
/// Exponent of the smallest normal value.
const MIN_EXPONENT: f32 = -6.0;
/// Exponent of the largest finite value.
const MAX_EXPONENT: f32 = 8.0;
/// Largest finite e4m3 value.
pub(super) const MAX_VALUE: f32 = 448.0;

/// Matmul operand that is read as floats, stored either as floats or as quantized values.
pub(super) enum DecodedOperand<B: Backend> {
    Floats(Tensor<B, 2>, DType),
    /// Quantized values, and a table of the 256 values that they represent.
    Quantized(Tensor<B, 2, Int>, Tensor<B, 1>),
}

impl<B: Backend> DecodedOperand<B> {
    /// Prepares an operand for reading in `dtype`, which must hold every e4m3 value exactly.
    pub(super) fn new(value: TensorValue<B>, element: Element, dtype: DType) -> Self {
        match value {
            TensorValue::Float(tensor) => Self::Floats(tensor, dtype),
            TensorValue::Int(codes) => {
                let values: Vec<f32> = (0..256).map(|code| element.decode(code)).collect();
                let table = Tensor::from_data(TensorData::new(values, [256]), (&codes.device(), dtype));
                Self::Quantized(codes, table)
            }
        }
    }

    /// Returns the values as a float tensor.
    pub(super) fn decode(&self) -> Tensor<B, 2> {
        match self {
            Self::Floats(tensor, dtype) => tensor.clone().cast(*dtype),
            Self::Quantized(codes, table) => {
                let [rows, cols] = codes.dims();
                table.clone().select(0, codes.clone().reshape([rows * cols])).reshape([rows, cols])
            }
        }
    }
}

/// 2^exponent for an integer exponent from -126 to 127. The exponential errs slightly; rounding to bf16 restores the
/// exact power, since no other bf16 value is as close.
pub(super) fn power_of_two<B: Backend, const D: usize>(exponent: Tensor<B, D>) -> Tensor<B, D> {
    exponent.mul_scalar(LN_2).exp().cast(DType::BF16).cast(DType::F32)
}

/// Returns x as an integer number of e4m3 steps at its magnitude (ties to even), and its exponent. A logarithm on the
/// wrong side of a power of two is harmless: both step sizes lead to that power.
fn steps_and_exponents<B: Backend, const D: usize>(x: Tensor<B, D>) -> (Tensor<B, D>, Tensor<B, D>) {
    let x = x.clamp(-MAX_VALUE, MAX_VALUE);
    // Zero has no logarithm; all values this small have the minimum exponent.
    let size = x.clone().abs().clamp_min(1.0 / 1024.0);
    let exponent = size.log().mul_scalar(LOG2_E).floor().clamp(MIN_EXPONENT, MAX_EXPONENT);
    let step = power_of_two(exponent.clone().sub_scalar(MANTISSA_BITS));
    ((x / step).round(), exponent)
}

/// Rounds f32 values to e4m3 (ties to even), saturating.
pub(super) fn round_to_e4m3<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, D> {
    let (steps, exponent) = steps_and_exponents(x);
    steps * power_of_two(exponent.sub_scalar(MANTISSA_BITS))
}

/// Encodes f32 values as e4m3 bytes (ties to even), saturating.
pub(super) fn encode<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2, Int> {
    let (steps, exponent) = steps_and_exponents(x.clone());
    // Each exponent has eight encodings. A normal value has at least eight steps, and sixteen steps reach the next
    // exponent.
    let magnitude = steps.abs() + exponent.sub_scalar(MIN_EXPONENT).mul_scalar(8.0);
    let negative = x.lower_elem(0.0);
    magnitude.clone().mask_where(negative, magnitude.add_scalar(128.0)).cast(IntDType::U8)
}
