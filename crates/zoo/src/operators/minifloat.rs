//! e4m3 by burn's operations, which know neither the type nor the bits of a float.

use crate::Value;
use burn::tensor::{DType, Int, IntDType, Tensor, TensorData, backend::Backend};
use calorimeter_recipes::{Codes, Element};
use std::f32::consts::{LN_2, LOG2_E};

/// Explicit bits of the mantissa.
const MANTISSA: f32 = 3.0;
/// The exponent of the least normal number.
const LEAST: f32 = -6.0;
/// The exponent of the largest number.
const MOST: f32 = 8.0;
/// The largest number.
pub(super) const LARGEST: f32 = 448.0;

/// An operand that is read as floats, whatever it is stored as.
pub(super) enum Decoded<B: Backend> {
    Floats(Tensor<B, 2>, DType),
    /// Codes, and the number that each of the 256 stands for.
    Codes(Tensor<B, 2, Int>, Tensor<B, 1>),
}

impl<B: Backend> Decoded<B> {
    /// The operand's numbers will be of this type, which holds every e4m3 number exactly.
    pub(super) fn new(value: Value<B>, element: Element, dtype: DType) -> Self {
        match value {
            Value::Float(tensor) => Self::Floats(tensor, dtype),
            Value::Codes(codes) => {
                let numbers: Vec<f32> = (0..256).map(|code| element.decode(code)).collect();
                let table = Tensor::from_data(TensorData::new(numbers, [256]), (&codes.device(), dtype));
                Self::Codes(codes, table)
            }
        }
    }

    /// Its numbers.
    pub(super) fn read(&self) -> Tensor<B, 2> {
        match self {
            Self::Floats(tensor, dtype) => tensor.clone().cast(*dtype),
            Self::Codes(codes, table) => {
                let [rows, cols] = codes.dims();
                table.clone().select(0, codes.clone().reshape([rows * cols])).reshape([rows, cols])
            }
        }
    }
}

/// 2 to a whole number from -126 to 127. An exponential is a little off; bf16 has no neighbor so near a power of two.
pub(super) fn power_of_two<B: Backend, const D: usize>(exponent: Tensor<B, D>) -> Tensor<B, D> {
    exponent.mul_scalar(LN_2).exp().cast(DType::BF16).cast(DType::F32)
}

/// f32 numbers in steps of the format at their size, whole, ties to even, and the exponents of the numbers. A logarithm that
/// falls to the wrong side of a power of two does no harm: there both steps lead to that power.
fn steps<B: Backend, const D: usize>(x: Tensor<B, D>) -> (Tensor<B, D>, Tensor<B, D>) {
    let x = x.clamp(-LARGEST, LARGEST);
    // A zero has no logarithm; everything this small has the least exponent.
    let size = x.clone().abs().clamp_min(1.0 / 1024.0);
    let exponent = size.log().mul_scalar(LOG2_E).floor().clamp(LEAST, MOST);
    let step = power_of_two(exponent.clone().sub_scalar(MANTISSA));
    ((x / step).round(), exponent)
}

/// The nearest e4m3 numbers of f32 numbers, ties to even; what is too large becomes the largest.
pub(super) fn nearest<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, D> {
    let (steps, exponent) = steps(x);
    steps * power_of_two(exponent.sub_scalar(MANTISSA))
}

/// The codes of the nearest e4m3 numbers.
pub(super) fn encode<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2, Int> {
    let (steps, exponent) = steps(x.clone());
    // Each exponent has eight codes; a normal number has eight steps or more, and sixteen lead to the next exponent.
    let magnitude = steps.abs() + exponent.sub_scalar(LEAST).mul_scalar(8.0);
    let negative = x.lower_elem(0.0);
    magnitude.clone().mask_where(negative, magnitude.add_scalar(128.0)).cast(IntDType::U8)
}
