//! Precisions in which matmuls are computed.

use calorimeter_case::{Dtype, Element, Record};
use std::fmt;

/// Precision that a computation actually used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Requested element type.
    Of(Element),
    /// TF32: f32 rounded for tensor cores.
    Tf32,
}

impl Numbers {
    pub const F32: Self = Self::of(Dtype::F32);

    /// Precision of a float dtype.
    pub const fn of(dtype: Dtype) -> Self {
        Self::Of(Element::Float(dtype))
    }
}

impl From<&Record> for Numbers {
    fn from(record: &Record) -> Self {
        if record.execution.tf32 { Self::Tf32 } else { Self::Of(record.case.element) }
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(element) => element.fmt(f),
            Self::Tf32 => f.pad("tf32"),
        }
    }
}
