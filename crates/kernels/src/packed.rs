//! Packed weights: quantized values that GEMM kernels dequantize on the fly.

use crate::{Dtype, Element};

/// Zero point of a packed weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ZeroPoint {
    /// No zero point: a weight is value * scale.
    None,
    /// Integer zero point: (value - zero) * scale. The element type is that of the stored zero points.
    Integer(Element),
    /// Floating-point zero point: (value - midpoint) * scale + zero. The element type is that of the stored zero
    /// points.
    Float(Element),
}

/// Storage format of a packed weight w[n, k]. The values of a row are packed densely into 32-bit words, lowest bits
/// first. Rows are padded to whole groups and to a multiple of 32 values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackedWeightFormat {
    /// Element type of the quantized values: integer or float of up to 8 bits. e4m3 has no NaN.
    pub element: Element,
    /// Elements along k that share a scale and a zero point; `None` for one scale per row.
    pub group: Option<usize>,
    /// Element type of the scales. Scales and zero points are stored row by row without gaps.
    pub scale: Element,
    /// Zero point.
    pub zero: ZeroPoint,
}

/// Format that the input is rounded to before multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InputFormat {
    /// Input is multiplied in its own dtype.
    Unquantized,
    /// OCP microscaling: nearest e4m3 or e2m1 values with one power-of-two scale per 32 elements of a row. The scale is
    /// rounded up, so that no value saturates.
    Mx(Element),
    /// NVFP4: nearest e2m1 values with one e4m3 scale per 16 elements of a row, and one scale each for the whole input
    /// and the whole weight, which are applied to the accumulators.
    Nvfp4,
}

/// Dtypes and formats of a GEMM with a packed weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackedLinearSpec {
    /// Dtype of x and y.
    pub kind: Dtype,
    /// Storage format of the weight.
    pub weight: PackedWeightFormat,
    /// Format that the input is rounded to.
    pub input: InputFormat,
}

impl PackedWeightFormat {
    /// int8 with one scale per row.
    pub fn int8(scale: Dtype) -> Self {
        Self { element: Element::Signed(8), group: None, scale: Element::Float(scale), zero: ZeroPoint::None }
    }

    /// e4m3 with one f32 scale per row.
    pub fn e4m3() -> Self {
        Self { element: Element::E4m3, ..Self::int8(Dtype::F32) }
    }

    /// uint4 around the midpoint of its range, with floating-point zero points. Scales and zero points have the given
    /// dtype.
    pub fn int4(group: usize, scale: Dtype) -> Self {
        let scale = Element::Float(scale);
        Self { element: Element::Unsigned(4), group: Some(group), scale, zero: ZeroPoint::Float(scale) }
    }

    /// OCP microscaling: one e8m0 scale per 32 elements.
    pub fn mx(element: Element) -> Self {
        Self { element, group: Some(32), scale: Element::E8m0, zero: ZeroPoint::None }
    }

    /// NVFP4: e2m1 with one e4m3 scale per 16 elements.
    pub fn nvfp4() -> Self {
        Self { element: Element::E2m1, group: Some(16), scale: Element::E4m3, zero: ZeroPoint::None }
    }
}

impl PackedLinearSpec {
    /// Weight-only quantization: the input keeps its dtype.
    pub fn weight_only(kind: Dtype, weight: PackedWeightFormat) -> Self {
        Self { kind, weight, input: InputFormat::Unquantized }
    }
}
