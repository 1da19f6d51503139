//! Quantization rules: scale and zero point of a group from its minimum and maximum, and quantized values from the
//! scale. Each method is a type.
//!
//! Type parameters: `S` is the dtype in which the scale is computed, `P` the dtype of the product of a value and the
//! inverse scale. Both follow torchao 0.14.1, which rounds to the dtype of the tensor after every operation.

use super::minifloat::{E2m1, E4m3, Minifloat, power_of_two};
use super::rounding::{StepRounding, clamp_i32, is_nan, max_f32, min_f32, prevent_fma, round_to_i32, select_bits};
use crate::format::QuantMethod;
use crate::{Element, ElementCodec, Format};
#[cfg(feature = "cube")]
use cubecl::prelude::*;
use std::marker::PhantomData;

/// Parameters of a quantization rule.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "cube", derive(CubeType, CubeLaunch))]
pub struct QuantParams {
    /// Divisor of amax, or of the range, that yields the scale.
    pub divisor: f32,
    /// Smallest scale.
    pub epsilon: f32,
    /// Smallest quantized integer.
    pub min: i32,
    /// Largest quantized integer. For microscaling: the exponent of the largest value.
    pub max: i32,
    /// Bit mask of a quantized value.
    pub mask: u32,
    /// Zero that the compiler cannot constant-fold, see [`prevent_fma()`].
    pub opaque_zero: u32,
}

impl QuantParams {
    /// Parameters of the quantization rule of a format.
    pub(crate) fn of_format(format: &Format) -> Self {
        let (min, max) = match (format.method, format.element) {
            (QuantMethod::Symmetric { min, max, .. }, _) => (i32::from(min), i32::from(max)),
            // For small floats: the exponent of the largest value.
            (QuantMethod::Mx(_), Element::E2m1) => (0, 2),
            (QuantMethod::Mx(_), _) => (0, 8),
            (_, Element::Signed(bits)) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            (_, element) => (0, (1 << element.bits().min(8)) - 1),
        };
        let range = (max - min) as f32;
        let (divisor, epsilon) = match format.method {
            QuantMethod::Symmetric { epsilon, .. } => (range / 2.0, epsilon),
            QuantMethod::Asymmetric { epsilon } | QuantMethod::Tinygemm { epsilon } => (range, epsilon),
            QuantMethod::Floats { epsilon } => (format.element.max_value(), epsilon),
            // The smallest block scale is the smallest normal value of e4m3.
            QuantMethod::Nvfp4 => (format.element.max_value(), 1.0 / 64.0),
            QuantMethod::Mx(_)
            | QuantMethod::Hqq(_)
            | QuantMethod::Qqq
            | QuantMethod::Ggml
            | QuantMethod::Unquantized => (format.element.max_value(), 0.0),
        };
        Self { divisor, epsilon, min, max, mask: u32::MAX >> (32 - format.bits()), opaque_zero: 0 }
    }
}

/// Quantization of a group with finite minimum and maximum.
#[cfg_attr(feature = "cube", cube)]
pub trait QuantRule: Send + Sync + 'static {
    /// Returns the scale of the group; `tensor_amax` is amax of the whole tensor.
    fn scale(low: f32, high: f32, tensor_amax: f32, params: QuantParams) -> f32;
    /// Returns the zero point, or zero for rules without one.
    fn zero(low: f32, scale: f32, params: QuantParams) -> f32;
    /// Quantizes a value.
    fn code(x: f32, scale: f32, zero: f32, tensor_amax: f32, params: QuantParams) -> u32;
}

/// Returns amax of a group.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn amax(low: f32, high: f32) -> f32 {
    max_f32(max_f32(-low, high), 0.0)
}

/// Divides; 0 / 0 is zero, where torchao has a NaN.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn div_or_zero(x: f32, scale: f32) -> f32 {
    let quotient = x / scale;
    f32::from_bits(select_bits(is_nan(quotient), 0u32, quotient.to_bits()))
}

/// Upper bound of an inverse scale.
const MAX_RECIPROCAL: f32 = f32::MAX;

/// Inverse scale. The inverse of a tiny f16 scale would be infinite; as a finite number it maps zero to zero, where
/// torchao has a NaN, and still saturates all other values.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn reciprocal<P: StepRounding>(scale: f32) -> f32 {
    min_f32(P::round(1.0 / scale), MAX_RECIPROCAL)
}

/// Zero point of rules without one.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn no_zero_point() -> f32 {
    min_f32(0.0, 0.0)
}

/// Symmetric integers.
#[derive(Debug, Clone, Copy)]
pub struct SymmetricRule<S, P>(PhantomData<(S, P)>);

#[cfg_attr(feature = "cube", cube)]
impl<S: StepRounding, P: StepRounding> QuantRule for SymmetricRule<S, P> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: QuantParams) -> f32 {
        max_f32(S::round(amax(low, high) / params.divisor), S::round(params.epsilon))
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: QuantParams) -> f32 {
        no_zero_point()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _tensor_amax: f32, params: QuantParams) -> u32 {
        let product = P::round(x * reciprocal::<P>(scale));
        clamp_i32(round_to_i32(prevent_fma(product, params.opaque_zero)), params.min, params.max) as u32 & params.mask
    }
}

/// Asymmetric integers with an integer zero point; the range always includes zero.
#[derive(Debug, Clone, Copy)]
pub struct AsymmetricRule<S>(PhantomData<S>);

#[cfg_attr(feature = "cube", cube)]
impl<S: StepRounding> QuantRule for AsymmetricRule<S> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: QuantParams) -> f32 {
        let range = S::round(max_f32(high, 0.0) - min_f32(low, 0.0));
        max_f32(S::round(range / params.divisor), S::round(params.epsilon))
    }

    #[inline(always)]
    fn zero(low: f32, scale: f32, params: QuantParams) -> f32 {
        let below = round_to_i32(S::round(min_f32(low, 0.0) / scale));
        clamp_i32(params.min - below, params.min, params.max) as f32
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, zero: f32, _tensor_amax: f32, params: QuantParams) -> u32 {
        let product = S::round(x * reciprocal::<S>(scale));
        let shifted = round_to_i32(prevent_fma(product, params.opaque_zero)) + zero as i32;
        clamp_i32(shifted, params.min, params.max) as u32 & params.mask
    }
}

/// Unsigned integers of tinygemm, centered on the middle of their range; the zero point is added after scaling.
#[derive(Debug, Clone, Copy)]
pub struct TinygemmRule<S>(PhantomData<S>);

#[cfg_attr(feature = "cube", cube)]
impl<S: StepRounding> QuantRule for TinygemmRule<S> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: QuantParams) -> f32 {
        max_f32(S::round(S::round(high - low) / params.divisor), S::round(params.epsilon))
    }

    #[inline(always)]
    fn zero(low: f32, scale: f32, params: QuantParams) -> f32 {
        S::round(low + prevent_fma(half_range(scale, params), params.opaque_zero))
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, zero: f32, _tensor_amax: f32, params: QuantParams) -> u32 {
        let min = S::round(zero - prevent_fma(half_range(scale, params), params.opaque_zero));
        let steps = S::round(S::round(x - min) / scale);
        clamp_i32(round_to_i32(steps), params.min, params.max) as u32
    }
}

/// Half of the range of unsigned values, in units of the tensor; exact, as the factor is a power of two.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn half_range(scale: f32, params: QuantParams) -> f32 {
    scale * ((params.max + 1) as f32 * 0.5)
}

/// Small floats; the scale maps amax to the largest value of the format.
#[derive(Debug, Clone, Copy)]
pub struct FloatRule<S, M>(PhantomData<(S, M)>);

#[cfg_attr(feature = "cube", cube)]
impl<S: StepRounding, M: Minifloat> QuantRule for FloatRule<S, M> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: QuantParams) -> f32 {
        S::round(max_f32(amax(low, high), params.epsilon) / params.divisor)
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: QuantParams) -> f32 {
        no_zero_point()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _tensor_amax: f32, _params: QuantParams) -> u32 {
        M::encode(div_or_zero(x, scale))
    }
}

/// OCP microscaling with the exponent rounded down.
#[derive(Debug, Clone, Copy)]
pub struct MxFloorRule<M>(PhantomData<M>);

#[cfg_attr(feature = "cube", cube)]
impl<M: Minifloat> QuantRule for MxFloorRule<M> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: QuantParams) -> f32 {
        let exponent = (amax(low, high).to_bits() >> 23) as i32 - params.max;
        power_of_two(clamp_i32(exponent, 0, 254) as u32)
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: QuantParams) -> f32 {
        no_zero_point()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _tensor_amax: f32, _params: QuantParams) -> u32 {
        // The smallest scale, 2^-127, is subnormal; its block is divided by 2^-126.
        M::encode(x / max_f32(scale, f32::MIN_POSITIVE))
    }
}

/// OCP microscaling with the exponent rounded up, so that no value saturates.
#[derive(Debug, Clone, Copy)]
pub struct MxCeilRule<M>(PhantomData<M>);

#[cfg_attr(feature = "cube", cube)]
impl<M: Minifloat> QuantRule for MxCeilRule<M> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: QuantParams) -> f32 {
        let bits = (amax(low, high) / params.divisor).to_bits();
        let mantissa = bits & 0x007F_FFFF;
        // Ratios below 2^-126 are subnormal; of these, ratios above 2^-127 are rounded up.
        let up = select_bits((bits >> 23) == 0, (mantissa > 0x0040_0000) as u32, (mantissa != 0) as u32);
        power_of_two((bits >> 23) + up)
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: QuantParams) -> f32 {
        no_zero_point()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _tensor_amax: f32, _params: QuantParams) -> u32 {
        // A block with the smallest scale, 2^-127, is not scaled.
        let exponent = scale.to_bits() >> 23;
        let inverse = f32::from_bits(select_bits(exponent == 0, 0x3F80_0000u32, (254 - exponent) << 23));
        M::encode(x * inverse)
    }
}

/// NVFP4: e2m1 values with e4m3 block scales and one f32 tensor scale.
#[derive(Debug, Clone, Copy)]
pub struct Nvfp4Rule;

/// NVFP4 scale of a tensor: maps amax to 2688 = 448 * 6, the product of the largest values of e4m3 and e2m1.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn nvfp4_tensor_scale(tensor_amax: f32) -> f32 {
    tensor_amax / 2688.0
}

#[cfg_attr(feature = "cube", cube)]
impl QuantRule for Nvfp4Rule {
    #[inline(always)]
    fn scale(low: f32, high: f32, tensor_amax: f32, params: QuantParams) -> f32 {
        let relative_scale = div_or_zero(amax(low, high) / params.divisor, nvfp4_tensor_scale(tensor_amax));
        // The smallest block scale is the smallest normal value of e4m3; the largest saturates.
        E4m3::decode(E4m3::encode(max_f32(relative_scale, params.epsilon)))
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: QuantParams) -> f32 {
        no_zero_point()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, tensor_amax: f32, _params: QuantParams) -> u32 {
        E2m1::encode(div_or_zero(x, nvfp4_tensor_scale(tensor_amax) * scale))
    }
}
