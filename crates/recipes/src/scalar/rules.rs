//! How a group's scale is found from its extremes, and a number's code from the scale: one type for each way.
//!
//! Names of steps: `S` is the type that the scale is computed in, `P` the type of the product of a number and the
//! inverse scale. Both follow torchao 0.14.1, which rounds after every operation to the tensor's own type.

use super::minifloat::{E2m1, E4m3, Minifloat};
use super::rounding::{Steps, apart, bounded, either, greater, is_nan, lesser, to_integer};
#[cfg(feature = "cube")]
use cubecl::prelude::*;
use std::marker::PhantomData;

/// The numbers that a rule is given.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "cube", derive(CubeType, CubeLaunch))]
pub struct Terms {
    /// What the largest magnitude, or the whole range, is divided by.
    pub divisor: f32,
    /// The smallest scale.
    pub epsilon: f32,
    /// The smallest integer that a code stands for.
    pub least: i32,
    /// The largest integer that a code stands for.
    pub most: i32,
    /// The bits of a code.
    pub mask: u32,
    /// A zero, see [`apart()`].
    pub blank: u32,
}

/// How a group is quantized, given its finite extremes.
#[cfg_attr(feature = "cube", cube)]
pub trait Rule: Send + Sync + 'static {
    /// The group's scale; `largest` is the largest magnitude of the whole tensor.
    fn scale(low: f32, high: f32, largest: f32, terms: Terms) -> f32;
    /// What zero is shifted to, where the rule shifts it.
    fn zero(low: f32, scale: f32, terms: Terms) -> f32;
    /// A number's code.
    fn code(x: f32, scale: f32, zero: f32, largest: f32, terms: Terms) -> u32;
}

/// The larger magnitude of the two extremes.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn amax(low: f32, high: f32) -> f32 {
    greater(greater(-low, high), 0.0)
}

/// A quotient; nothing divided by nothing is nothing, where torchao has a NaN.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn over(x: f32, scale: f32) -> f32 {
    let quotient = x / scale;
    f32::from_bits(either(is_nan(quotient), 0u32, quotient.to_bits()))
}

/// The largest inverse of a scale.
const STEEPEST: f32 = f32::MAX;

/// Codes per unit. In f16 the inverse of a tiny scale is infinite; kept finite, it takes zero to zero where torchao has a
/// NaN, and everything else beyond the range as infinity would.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn inverse<P: Steps>(scale: f32) -> f32 {
    lesser(P::round(1.0 / scale), STEEPEST)
}

/// The zero of rules that have none.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn nothing() -> f32 {
    lesser(0.0, 0.0)
}

/// Integers around zero.
#[derive(Debug, Clone, Copy)]
pub struct Symmetric<S, P>(PhantomData<(S, P)>);

#[cfg_attr(feature = "cube", cube)]
impl<S: Steps, P: Steps> Rule for Symmetric<S, P> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _largest: f32, terms: Terms) -> f32 {
        greater(S::round(amax(low, high) / terms.divisor), S::round(terms.epsilon))
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _terms: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _largest: f32, terms: Terms) -> u32 {
        let product = P::round(x * inverse::<P>(scale));
        bounded(to_integer(apart(product, terms.blank)), terms.least, terms.most) as u32 & terms.mask
    }
}

/// Integers around an integer zero point; the range always takes in zero.
#[derive(Debug, Clone, Copy)]
pub struct Asymmetric<S>(PhantomData<S>);

#[cfg_attr(feature = "cube", cube)]
impl<S: Steps> Rule for Asymmetric<S> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _largest: f32, terms: Terms) -> f32 {
        let range = S::round(greater(high, 0.0) - lesser(low, 0.0));
        greater(S::round(range / terms.divisor), S::round(terms.epsilon))
    }

    #[inline(always)]
    fn zero(low: f32, scale: f32, terms: Terms) -> f32 {
        let below = to_integer(S::round(lesser(low, 0.0) / scale));
        bounded(terms.least - below, terms.least, terms.most) as f32
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, zero: f32, _largest: f32, terms: Terms) -> u32 {
        let product = S::round(x * inverse::<S>(scale));
        let shifted = to_integer(apart(product, terms.blank)) + zero as i32;
        bounded(shifted, terms.least, terms.most) as u32 & terms.mask
    }
}

/// Unsigned integers around the middle of their range, with a zero in units of the tensor: tinygemm's.
#[derive(Debug, Clone, Copy)]
pub struct Tinygemm<S>(PhantomData<S>);

#[cfg_attr(feature = "cube", cube)]
impl<S: Steps> Rule for Tinygemm<S> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _largest: f32, terms: Terms) -> f32 {
        greater(S::round(S::round(high - low) / terms.divisor), S::round(terms.epsilon))
    }

    #[inline(always)]
    fn zero(low: f32, scale: f32, terms: Terms) -> f32 {
        S::round(low + apart(middle(scale, terms), terms.blank))
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, zero: f32, _largest: f32, terms: Terms) -> u32 {
        let least = S::round(zero - apart(middle(scale, terms), terms.blank));
        let steps = S::round(S::round(x - least) / scale);
        bounded(to_integer(steps), terms.least, terms.most) as u32
    }
}

/// Half of the range of unsigned codes, in steps of `scale`: a power of two of them, so exact.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn middle(scale: f32, terms: Terms) -> f32 {
    scale * ((terms.most + 1) as f32 * 0.5)
}

/// Small floats under the scale that takes the largest magnitude to the format's largest number.
#[derive(Debug, Clone, Copy)]
pub struct Floats<S, M>(PhantomData<(S, M)>);

#[cfg_attr(feature = "cube", cube)]
impl<S: Steps, M: Minifloat> Rule for Floats<S, M> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _largest: f32, terms: Terms) -> f32 {
        S::round(greater(amax(low, high), terms.epsilon) / terms.divisor)
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _terms: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _largest: f32, _terms: Terms) -> u32 {
        M::encode(over(x, scale))
    }
}

/// Small floats under a power of two: OCP microscaling, with the exponent rounded down.
#[derive(Debug, Clone, Copy)]
pub struct MxFloor<M>(PhantomData<M>);

#[cfg_attr(feature = "cube", cube)]
impl<M: Minifloat> Rule for MxFloor<M> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _largest: f32, terms: Terms) -> f32 {
        let exponent = (amax(low, high).to_bits() >> 23) as i32 - terms.most;
        power_of_two(bounded(exponent, 0, 254) as u32)
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _terms: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _largest: f32, _terms: Terms) -> u32 {
        // The smallest scale, 2^-127, is not a normal number; what it divides is divided by 2^-126.
        M::encode(x / greater(scale, f32::MIN_POSITIVE))
    }
}

/// Small floats under a power of two, with the exponent rounded up, so that nothing saturates.
#[derive(Debug, Clone, Copy)]
pub struct MxCeil<M>(PhantomData<M>);

#[cfg_attr(feature = "cube", cube)]
impl<M: Minifloat> Rule for MxCeil<M> {
    #[inline(always)]
    fn scale(low: f32, high: f32, _largest: f32, terms: Terms) -> f32 {
        let bits = (amax(low, high) / terms.divisor).to_bits();
        let mantissa = bits & 0x007F_FFFF;
        // Of the numbers below 2^-126, those above 2^-127 round up.
        let up = either((bits >> 23) == 0, (mantissa > 0x0040_0000) as u32, (mantissa != 0) as u32);
        power_of_two((bits >> 23) + up)
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _terms: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, _largest: f32, _terms: Terms) -> u32 {
        // A block whose scale is the smallest, 2^-127, is taken as it is.
        let exponent = scale.to_bits() >> 23;
        let inverse = f32::from_bits(either(exponent == 0, 0x3F80_0000u32, (254 - exponent) << 23));
        M::encode(x * inverse)
    }
}

/// 2^(exponent - 127); 2^-127 is below the normal numbers.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn power_of_two(exponent: u32) -> f32 {
    f32::from_bits(either(exponent == 0, 0x0040_0000u32, exponent << 23))
}

/// e2m1 under an e4m3 scale, both under one f32 scale of the tensor: NVFP4.
#[derive(Debug, Clone, Copy)]
pub struct Nvfp4;

/// The scale of a tensor in NVFP4: takes its largest magnitude to the product of both formats' largest numbers.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn nvfp4_tensor_scale(largest: f32) -> f32 {
    largest / 2688.0
}

#[cfg_attr(feature = "cube", cube)]
impl Rule for Nvfp4 {
    #[inline(always)]
    fn scale(low: f32, high: f32, largest: f32, terms: Terms) -> f32 {
        let wanted = over(amax(low, high) / terms.divisor, nvfp4_tensor_scale(largest));
        // The smallest normal number of e4m3 is the smallest scale; the largest saturates.
        E4m3::decode(E4m3::encode(greater(wanted, terms.epsilon)))
    }

    #[inline(always)]
    fn zero(_low: f32, _scale: f32, _terms: Terms) -> f32 {
        nothing()
    }

    #[inline(always)]
    fn code(x: f32, scale: f32, _zero: f32, largest: f32, _terms: Terms) -> u32 {
        E2m1::encode(over(x, nvfp4_tensor_scale(largest) * scale))
    }
}
