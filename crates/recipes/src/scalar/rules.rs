//! Quantization rules: scale and zero point of a group from its minimum and maximum, and quantized values from the
//! scale. Each method is a type.
//!
//! Type parameters: `S` is the dtype in which the scale is computed, `P` the dtype of the product of a value and the
//! inverse scale. Both follow torchao 0.14.1, which rounds to the dtype of the tensor after every operation.

use super::minifloat::{E2m1, E4m3, Minifloat};
use super::rounding::{Steps, apart, bounded, either, greater, is_nan, lesser, to_integer};
#[cfg(feature = "cube")]
use cubecl::prelude::*;
use std::marker::PhantomData;

/// Parameters of a quantization rule.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "cube", derive(CubeType, CubeLaunch))]
pub struct Terms {
    /// Divisor of amax, or of the range, that yields the scale.
    pub divisor: f32,
    /// Smallest scale.
    pub epsilon: f32,
    /// Smallest quantized integer.
    pub least: i32,
    /// Largest quantized integer. For microscaling: the exponent of the largest value.
    pub most: i32,
    /// Bit mask of a quantized value.
    pub mask: u32,
    /// Zero that the compiler cannot constant-fold, see [`apart()`].
    pub blank: u32,
}

/// Quantization of a group with finite minimum and maximum.
#[cfg_attr(feature = "cube", cube)]
pub trait Rule: Send + Sync + 'static {
    /// Returns the scale of the group; `tensor_amax` is amax of the whole tensor.
    fn scale(low: f32, high: f32, tensor_amax: f32, params: Terms) -> f32;
    /// Returns the zero point, or zero for rules without one.
    fn zero(low: f32, scale: f32, params: Terms) -> f32;
    /// Quantizes a value.
    fn code(x: f32, scale: f32, zero: f32, tensor_amax: f32, params: Terms) -> u32;
}

/// Returns amax of a group.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn amax(low: f32, high: f32) -> f32 {
    greater(greater(-low, high), 0.0)
}

/// Divides; 0 / 0 is zero, where torchao has a NaN.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn over(x: f32, scale: f32) -> f32 {
    let quotient = x / scale;
    f32::from_bits(either(is_nan(quotient), 0u32, quotient.to_bits()))
}

/// Upper bound of an inverse scale.
const STEEPEST: f32 = f32::MAX;

/// Inverse scale. The inverse of a tiny f16 scale would be infinite; as a finite number it maps zero to zero, where
/// torchao has a NaN, and still saturates all other values.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn inverse<P: Steps>(scale: f32) -> f32 {
    lesser(P::round(1.0 / scale), STEEPEST)
}

/// Zero point of rules without one.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn nothing() -> f32 {
    lesser(0.0, 0.0)
}

/// Symmetric integers.
#[derive(Debug, Clone, Copy)]
pub struct Symmetric<S, P>(PhantomData<(S, P)>);

#[cfg_attr(feature = "cube", cube)]
impl<S: Steps, P: Steps> Rule for Symmetric<S, P> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: Terms) -> f32 {
        greater(S::round(amax(low, high) / params.divisor), S::round(params.epsilon))
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _tensor_amax: f32, params: Terms) -> u32 {
        let product = P::round(x * inverse::<P>(scale));
        bounded(to_integer(apart(product, params.blank)), params.least, params.most) as u32 & params.mask
    }
}

/// Asymmetric integers with an integer zero point; the range always includes zero.
#[derive(Debug, Clone, Copy)]
pub struct Asymmetric<S>(PhantomData<S>);

#[cfg_attr(feature = "cube", cube)]
impl<S: Steps> Rule for Asymmetric<S> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: Terms) -> f32 {
        let range = S::round(greater(high, 0.0) - lesser(low, 0.0));
        greater(S::round(range / params.divisor), S::round(params.epsilon))
    }

    #[inline(always)]
    fn zero(low: f32, scale: f32, params: Terms) -> f32 {
        let below = to_integer(S::round(lesser(low, 0.0) / scale));
        bounded(params.least - below, params.least, params.most) as f32
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, zero: f32, _tensor_amax: f32, params: Terms) -> u32 {
        let product = S::round(x * inverse::<S>(scale));
        let shifted = to_integer(apart(product, params.blank)) + zero as i32;
        bounded(shifted, params.least, params.most) as u32 & params.mask
    }
}

/// Unsigned integers of tinygemm, centered on the middle of their range; the zero point is added after scaling.
#[derive(Debug, Clone, Copy)]
pub struct Tinygemm<S>(PhantomData<S>);

#[cfg_attr(feature = "cube", cube)]
impl<S: Steps> Rule for Tinygemm<S> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: Terms) -> f32 {
        greater(S::round(S::round(high - low) / params.divisor), S::round(params.epsilon))
    }

    #[inline(always)]
    fn zero(low: f32, scale: f32, params: Terms) -> f32 {
        S::round(low + apart(middle(scale, params), params.blank))
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, zero: f32, _tensor_amax: f32, params: Terms) -> u32 {
        let min = S::round(zero - apart(middle(scale, params), params.blank));
        let steps = S::round(S::round(x - min) / scale);
        bounded(to_integer(steps), params.least, params.most) as u32
    }
}

/// Half of the range of unsigned values, in units of the tensor; exact, as the factor is a power of two.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn middle(scale: f32, params: Terms) -> f32 {
    scale * ((params.most + 1) as f32 * 0.5)
}

/// Small floats; the scale maps amax to the largest value of the format.
#[derive(Debug, Clone, Copy)]
pub struct Floats<S, M>(PhantomData<(S, M)>);

#[cfg_attr(feature = "cube", cube)]
impl<S: Steps, M: Minifloat> Rule for Floats<S, M> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: Terms) -> f32 {
        S::round(greater(amax(low, high), params.epsilon) / params.divisor)
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _tensor_amax: f32, _params: Terms) -> u32 {
        M::encode(over(x, scale))
    }
}

/// OCP microscaling with the exponent rounded down.
#[derive(Debug, Clone, Copy)]
pub struct MxFloor<M>(PhantomData<M>);

#[cfg_attr(feature = "cube", cube)]
impl<M: Minifloat> Rule for MxFloor<M> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: Terms) -> f32 {
        let exponent = (amax(low, high).to_bits() >> 23) as i32 - params.most;
        power_of_two(bounded(exponent, 0, 254) as u32)
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _tensor_amax: f32, _params: Terms) -> u32 {
        // The smallest scale, 2^-127, is subnormal; its block is divided by 2^-126.
        M::encode(x / greater(scale, f32::MIN_POSITIVE))
    }
}

/// OCP microscaling with the exponent rounded up, so that no value saturates.
#[derive(Debug, Clone, Copy)]
pub struct MxCeil<M>(PhantomData<M>);

#[cfg_attr(feature = "cube", cube)]
impl<M: Minifloat> Rule for MxCeil<M> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _tensor_amax: f32, params: Terms) -> f32 {
        let bits = (amax(low, high) / params.divisor).to_bits();
        let mantissa = bits & 0x007F_FFFF;
        // Ratios below 2^-126 are subnormal; of these, ratios above 2^-127 are rounded up.
        let up = either((bits >> 23) == 0, (mantissa > 0x0040_0000) as u32, (mantissa != 0) as u32);
        power_of_two((bits >> 23) + up)
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _tensor_amax: f32, _params: Terms) -> u32 {
        // A block with the smallest scale, 2^-127, is not scaled.
        let exponent = scale.to_bits() >> 23;
        let inverse = f32::from_bits(either(exponent == 0, 0x3F80_0000u32, (254 - exponent) << 23));
        M::encode(x * inverse)
    }
}

/// Returns 2^(exponent - 127); 2^-127 is subnormal.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn power_of_two(exponent: u32) -> f32 {
    f32::from_bits(either(exponent == 0, 0x0040_0000u32, exponent << 23))
}

/// NVFP4: e2m1 values with e4m3 block scales and one f32 tensor scale.
#[derive(Debug, Clone, Copy)]
pub struct Nvfp4;

/// NVFP4 scale of a tensor: maps amax to 2688 = 448 * 6, the product of the largest values of e4m3 and e2m1.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn nvfp4_tensor_scale(tensor_amax: f32) -> f32 {
    tensor_amax / 2688.0
}

#[cfg_attr(feature = "cube", cube)]
impl Rule for Nvfp4 {
    #[inline(always)]
    fn scale(low: f32, high: f32, tensor_amax: f32, params: Terms) -> f32 {
        let relative_scale = over(amax(low, high) / params.divisor, nvfp4_tensor_scale(tensor_amax));
        // The smallest block scale is the smallest normal value of e4m3; the largest saturates.
        E4m3::decode(E4m3::encode(greater(relative_scale, params.epsilon)))
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _params: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, tensor_amax: f32, _params: Terms) -> u32 {
        E2m1::encode(over(x, nvfp4_tensor_scale(tensor_amax) * scale))
    }
}
