//! Precisions in which matmuls are computed.

use calorimeter_case::{Dtype, Element, Record};
use std::fmt;

/// Precision that a computation actually used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComputePrecision {
    /// Requested element type.
    Element(Element),
    /// TF32: f32 rounded for tensor cores.
    Tf32,
}

impl ComputePrecision {
    pub(super) const F32: Self = Self::float(Dtype::F32);

    /// Precision of a float dtype.
    pub(super) const fn float(dtype: Dtype) -> Self {
        Self::Element(Element::Float(dtype))
    }
}

impl From<&Record> for ComputePrecision {
    fn from(record: &Record) -> Self {
        if record.execution.tf32 { Self::Tf32 } else { Self::Element(record.case.element) }
    }
}

impl fmt::Display for ComputePrecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element(element) => element.fmt(f),
            Self::Tf32 => f.pad("tf32"),
        }
    }
}
