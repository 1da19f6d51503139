//! Numbers as they are stored: in f32, or in bf16 where that holds them exactly or they are to be rounded to it.

use crate::rowwise::{bf16, widen};

/// Stored numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// In f32.
    F32(Vec<f32>),
    /// The bit patterns of bf16.
    Bf16(Vec<u16>),
}

impl Numbers {
    /// The nearest bf16 of numbers.
    pub fn bf16(numbers: &[f32]) -> Self {
        Self::Bf16(numbers.iter().map(|&x| bf16(x)).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(numbers) => numbers.len(),
            Self::Bf16(numbers) => numbers.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes they take.
    pub fn bytes(&self) -> usize {
        match self {
            Self::F32(numbers) => 4 * numbers.len(),
            Self::Bf16(numbers) => 2 * numbers.len(),
        }
    }

    /// The same in whole words.
    pub fn bytes_in_words(&self) -> usize {
        self.bytes().next_multiple_of(4)
    }

    /// The numbers in f32.
    pub fn widened(&self) -> Vec<f32> {
        match self {
            Self::F32(numbers) => numbers.clone(),
            Self::Bf16(numbers) => numbers.iter().map(|&bits| widen(bits)).collect(),
        }
    }

    /// Makes all of them NaN.
    pub fn poison(&mut self) {
        match self {
            Self::F32(numbers) => numbers.fill(f32::NAN),
            Self::Bf16(numbers) => numbers.fill(bf16(f32::NAN)),
        }
    }

    #[inline(always)]
    pub(super) fn at(&self, index: usize) -> f32 {
        match self {
            Self::F32(numbers) => numbers[index],
            Self::Bf16(numbers) => widen(numbers[index]),
        }
    }
}
