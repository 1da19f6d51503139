//! Rounding and burn dtype of the float types of models.

use burn::tensor::DType;
use calorimeter_case::Dtype;
use half::{bf16, f16};

/// Arithmetic of a [`Dtype`].
pub trait FloatType: Copy {
    /// Rounds to the nearest value of this dtype, ties to even.
    fn round(self, value: f32) -> f32;

    /// Returns the dtype of burn.
    fn burn(self) -> DType;

    /// Returns the dtype of a burn tensor; `None` for other dtypes.
    fn from_burn(dtype: DType) -> Option<Self>;
}

impl FloatType for Dtype {
    fn round(self, value: f32) -> f32 {
        match self {
            Self::F32 => value,
            Self::F16 => f16::from_f32(value).to_f32(),
            Self::Bf16 => bf16::from_f32(value).to_f32(),
        }
    }

    fn burn(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::Bf16 => DType::BF16,
        }
    }

    fn from_burn(dtype: DType) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.burn() == dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_even() {
        assert_eq!(Dtype::Bf16.round(1.0 + 1.0 / 256.0), 1.0);
        assert_eq!(Dtype::Bf16.round(1.0 + 3.0 / 256.0), 1.0 + 4.0 / 256.0);
        assert_eq!(Dtype::F16.round(2049.0), 2048.0);
        assert_eq!(Dtype::F32.round(0.1), 0.1);
    }
}
