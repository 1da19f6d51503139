//! Activation functions.

use crate::UnknownName;
use std::{fmt, str::FromStr};

/// An activation function with PyTorch's default constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activation {
    /// max(x, 0).
    Relu,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// x, or x / 100 below zero.
    LeakyRelu,
    /// x clamped to 0 … 6.
    Relu6,
    /// x Φ(x), with the error function.
    Gelu,
    /// x sigmoid(x).
    Silu,
    /// x relu6(x + 3) / 6.
    HardSwish,
}

impl Activation {
    /// All activations.
    pub const ALL: [Self; 7] =
        [Self::Relu, Self::Sigmoid, Self::LeakyRelu, Self::Relu6, Self::Gelu, Self::Silu, Self::HardSwish];

    /// Lower-case name, used by models and kernels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::LeakyRelu => "leakyrelu",
            Self::Relu6 => "relu6",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
            Self::HardSwish => "hardswish",
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Activation {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|activation| activation.name() == name);
        found.ok_or_else(|| UnknownName::new("activation", name, Self::ALL.map(Self::name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activation_names_round_trip() {
        for activation in Activation::ALL {
            assert_eq!(activation.to_string().parse(), Ok(activation));
        }
        assert_eq!("gellu".parse::<Activation>().unwrap_err().nearest.as_deref(), Some("gelu"));
    }
}
