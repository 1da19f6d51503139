//! The numbers that products are computed in.

use calorimeter_case::{Dtype, Element, Record};
use std::fmt;

/// The kind of number that something was really computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// That which was asked for.
    Of(Element),
    /// f32, rounded for tensor cores.
    Tf32,
}

impl Numbers {
    /// Single precision.
    pub const F32: Self = Self::of(Dtype::F32);

    /// Those of a type of floats.
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
