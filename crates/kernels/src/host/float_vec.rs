//! Vectors of f32 or bf16.

use crate::rowwise::{bf16_to_f32, to_bf16};
use crate::{Dtype, Element};
use half::f16;

/// Float vector with its dtype.
#[derive(Debug, Clone, PartialEq)]
pub enum FloatVec {
    /// f32 values.
    F32(Vec<f32>),
    /// bf16 bit patterns.
    Bf16(Vec<u16>),
}

impl FloatVec {
    /// Rounds to bf16 for elements of that dtype; other elements are stored in f32.
    pub fn new(numbers: &[f32], element: Element) -> Self {
        match element {
            Element::Float(Dtype::Bf16) => Self::bf16(numbers),
            _ => Self::F32(numbers.to_vec()),
        }
    }

    /// Rounds to bf16.
    pub fn bf16(numbers: &[f32]) -> Self {
        Self::Bf16(numbers.iter().map(|&x| to_bf16(x)).collect())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(numbers) => numbers.len(),
            Self::Bf16(numbers) => numbers.len(),
        }
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::F32(numbers) => 4 * numbers.len(),
            Self::Bf16(numbers) => 2 * numbers.len(),
        }
    }

    /// Size in bytes, rounded up to whole words.
    pub fn bytes_in_words(&self) -> usize {
        self.bytes().next_multiple_of(4)
    }

    /// Converts to f32.
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            Self::F32(numbers) => numbers.clone(),
            Self::Bf16(numbers) => numbers.iter().map(|&bits| bf16_to_f32(bits)).collect(),
        }
    }

    /// Sets all elements to NaN.
    pub fn poison(&mut self) {
        match self {
            Self::F32(numbers) => numbers.fill(f32::NAN),
            Self::Bf16(numbers) => numbers.fill(to_bf16(f32::NAN)),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> f32 {
        match self {
            Self::F32(numbers) => numbers[index],
            Self::Bf16(numbers) => bf16_to_f32(numbers[index]),
        }
    }
}

/// Element of a [`FloatVec`].
pub(super) trait StoredFloat: Copy + Default + Sync {
    /// Converts to f32.
    fn to_f32(self) -> f32;
}

impl StoredFloat for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
}

/// bf16 bit pattern.
impl StoredFloat for u16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        bf16_to_f32(self)
    }
}

/// Finite f16 value.
impl StoredFloat for f16 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        // Moves exponent and mantissa to their places in f32, and corrects the exponent by 2^112, the difference of the
        // biases. Unlike the conversion of the crate half, the function is inlined and needs no feature detection.
        let bits = u32::from(self.to_bits());
        let magnitude = f32::from_bits((bits & 0x7FFF) << 13) * f32::from_bits(0x7780_0000);
        f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_f16_converts_exactly() {
        for bits in (0..=u16::MAX).map(f16::from_bits).filter(|x| x.is_finite()) {
            assert_eq!(StoredFloat::to_f32(bits).to_bits(), f16::to_f32(bits).to_bits(), "{bits}");
        }
    }
}
