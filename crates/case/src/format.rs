//! Storage formats of tensors: element type, granularity of scales, and quantization method.

use crate::{Dtype, Element};

/// Granularity of scales: the values that share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// All values of the tensor.
    Tensor,
    /// A row: an output channel of a weight, a token of an activation.
    Row,
    /// Groups of this many consecutive values of a row; the last group of a row is padded with zeros.
    Block(u32),
}

/// Rounding of the exponent of a microscaling block's scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MxScaling {
    /// Down: the largest magnitudes may saturate.
    Floor,
    /// Up: no value saturates.
    Ceil,
}

/// HQQ iterate whose zero points are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HqqIterate {
    /// Iterate after which the error stopped falling, as in torchao.
    #[default]
    Last,
    /// Iterate with the smallest error.
    Best,
}

/// Quantization method: how scale, zero point and quantized values of a group are computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QuantMethod {
    /// Not quantized; no scales.
    Unquantized,
    /// Symmetric integers: scale = amax / half the range.
    Symmetric {
        /// Smallest quantized value.
        min: i16,
        /// Largest quantized value.
        max: i16,
        /// Smallest scale.
        epsilon: f32,
    },
    /// Asymmetric integers with an integer zero point; the range always includes zero.
    Asymmetric {
        /// Smallest scale.
        epsilon: f32,
    },
    /// Unsigned integers centered on the middle of their range; the zero point is added after scaling.
    Tinygemm {
        /// Smallest scale.
        epsilon: f32,
    },
    /// Half-quadratic quantization: zero points optimized for a sparse error, scales from the range.
    Hqq(HqqIterate),
    /// Small floats: scale = max(amax, epsilon) / largest value of the format.
    Floats {
        /// Lower bound of amax.
        epsilon: f32,
    },
    /// OCP microscaling: small floats with power-of-two scales.
    Mx(MxScaling),
    /// e2m1 values with e4m3 block scales and one f32 tensor scale.
    Nvfp4,
    /// 4-bit integers whose group scales are relative to an int8 scale per row.
    Qqq,
    /// Symmetric integers with the arithmetic of ggml: `Q8_0` for 8 bits, `Q4_0` for 4 bits. The `Q4_0` scale has the
    /// opposite sign of the value with the largest magnitude.
    Ggml,
}

/// Role and element type of a group's zero point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ZeroPoint {
    /// No zero point: value = q * scale.
    None,
    /// Subtracted before scaling: value = (q - zero) * scale.
    BeforeScale(Element),
    /// Added after scaling: value = (q - midpoint) * scale + zero.
    AfterScale(Element),
}

impl ZeroPoint {
    /// Element type of the stored zero point.
    pub fn element(self) -> Option<Element> {
        match self {
            Self::None => None,
            Self::BeforeScale(element) | Self::AfterScale(element) => Some(element),
        }
    }
}

/// Storage format of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Format {
    /// Element type of the quantized values.
    pub element: Element,
    /// Granularity of scales.
    pub grouping: Grouping,
    /// Quantization method.
    pub method: QuantMethod,
    /// Dtype of the source tensor; every step of the method is rounded to it.
    pub compute_dtype: Dtype,
    /// Element type of stored scales.
    pub scale: Element,
    /// Role and element type of zero points.
    pub zero: ZeroPoint,
    /// 2:4 sparsity: of four consecutive values of a row two are stored, the others are zero.
    pub sparse_2to4: bool,
}

/// Smallest scale of most recipes: the machine epsilon of f32.
pub const DEFAULT_EPSILON: f32 = f32::EPSILON;

impl Format {
    /// Values of a packing block: every row of quantized values is padded to a multiple of it, so that a row fills
    /// whole words for any number of bits.
    pub const PACKING_BLOCK: usize = 32;

    /// Unquantized values.
    pub fn unquantized(dtype: Dtype) -> Self {
        let (element, grouping) = (Element::Float(dtype), Grouping::Row);
        let scale = Element::Float(Dtype::F32);
        Self {
            element,
            grouping,
            method: QuantMethod::Unquantized,
            compute_dtype: dtype,
            scale,
            zero: ZeroPoint::None,
            sparse_2to4: false,
        }
    }

    /// Symmetric integers over the whole range of `bits`.
    pub fn symmetric(bits: u8, grouping: Grouping, compute_dtype: Dtype, scale: Dtype) -> Self {
        let half = 1i16 << (bits - 1);
        let method = QuantMethod::Symmetric { min: -half, max: half - 1, epsilon: DEFAULT_EPSILON };
        let (element, scale) = (Element::Signed(bits), Element::Float(scale));
        Self { element, grouping, method, compute_dtype, scale, zero: ZeroPoint::None, sparse_2to4: false }
    }

    /// Replaces the method, for another range or smallest scale.
    pub fn with_method(self, method: QuantMethod) -> Self {
        Self { method, ..self }
    }

    /// Integers with an integer zero point.
    pub fn asymmetric(element: Element, grouping: Grouping, compute_dtype: Dtype) -> Self {
        let (method, scale) = (QuantMethod::Asymmetric { epsilon: DEFAULT_EPSILON }, Element::Float(compute_dtype));
        // The zero point is itself a quantized value.
        Self {
            element,
            grouping,
            method,
            compute_dtype,
            scale,
            zero: ZeroPoint::BeforeScale(element),
            sparse_2to4: false,
        }
    }

    /// 4-bit integers of tinygemm; scales and zero points in the dtype of the tensor.
    pub fn tinygemm(grouping: Grouping, compute_dtype: Dtype) -> Self {
        let (method, scale) = (QuantMethod::Tinygemm { epsilon: 1e-6 }, Element::Float(compute_dtype));
        Self {
            element: Element::Unsigned(4),
            grouping,
            method,
            compute_dtype,
            scale,
            zero: ZeroPoint::AfterScale(scale),
            sparse_2to4: false,
        }
    }

    /// Unsigned integers by half-quadratic quantization.
    pub fn hqq(bits: u8, grouping: Grouping, compute_dtype: Dtype, scale: Dtype, zero: ZeroPoint) -> Self {
        let (element, method) = (Element::Unsigned(bits), QuantMethod::Hqq(HqqIterate::default()));
        Self { element, grouping, method, compute_dtype, scale: Element::Float(scale), zero, sparse_2to4: false }
    }

    /// 4-bit integers of QQQ.
    pub fn qqq(grouping: Grouping, compute_dtype: Dtype) -> Self {
        let (element, scale) = (Element::Signed(4), Element::Float(compute_dtype));
        Self {
            element,
            grouping,
            method: QuantMethod::Qqq,
            compute_dtype,
            scale,
            zero: ZeroPoint::None,
            sparse_2to4: false,
        }
    }

    /// Integers of ggml in blocks of 32, computed in f32 for every dtype of the tensor; scales in f16.
    pub fn ggml(bits: u8) -> Self {
        Self {
            element: Element::Signed(bits),
            grouping: Grouping::Block(32),
            method: QuantMethod::Ggml,
            compute_dtype: Dtype::F32,
            scale: Element::Float(Dtype::F16),
            zero: ZeroPoint::None,
            sparse_2to4: false,
        }
    }

    /// 8-bit floats; the scale is rounded to the dtype of the tensor and stored in f32.
    pub fn float8(element: Element, grouping: Grouping, compute_dtype: Dtype) -> Self {
        let method = QuantMethod::Floats { epsilon: 0.0 };
        Self {
            element,
            grouping,
            method,
            compute_dtype,
            scale: Element::Float(Dtype::F32),
            zero: ZeroPoint::None,
            sparse_2to4: false,
        }
    }

    /// OCP microscaling with blocks of 32.
    pub fn mx(element: Element, scaling: MxScaling) -> Self {
        let grouping = Grouping::Block(32);
        let method = QuantMethod::Mx(scaling);
        Self {
            element,
            grouping,
            method,
            compute_dtype: Dtype::F32,
            scale: Element::E8m0,
            zero: ZeroPoint::None,
            sparse_2to4: false,
        }
    }

    /// NVFP4 with blocks of 16 and a tensor scale.
    pub fn nvfp4() -> Self {
        let (element, grouping) = (Element::E2m1, Grouping::Block(16));
        Self {
            element,
            grouping,
            method: QuantMethod::Nvfp4,
            compute_dtype: Dtype::F32,
            scale: Element::E4m3,
            zero: ZeroPoint::None,
            sparse_2to4: false,
        }
    }

    /// Replaces the element type of scales and zero points by f32, as kernels write them.
    pub fn with_f32_scales(self) -> Self {
        let full = Element::Float(Dtype::F32);
        let zero = match self.zero {
            ZeroPoint::None => ZeroPoint::None,
            ZeroPoint::BeforeScale(_) => ZeroPoint::BeforeScale(full),
            ZeroPoint::AfterScale(_) => ZeroPoint::AfterScale(full),
        };
        Self { scale: full, zero, ..self }
    }

    /// True if the quantized value times its group scale is rounded to int8 before the row scale is applied.
    pub fn rounds_to_int8(&self) -> bool {
        self.method == QuantMethod::Qqq
    }

    /// True if a quantized value depends on amax of the whole tensor.
    pub fn needs_tensor_amax(&self) -> bool {
        self.grouping == Grouping::Tensor || self.method == QuantMethod::Nvfp4
    }

    /// True if a negative amax lies halfway between two quantized values, so that an earlier rounding decides which of
    /// them it becomes.
    pub fn has_amax_between_values(&self) -> bool {
        matches!(self.method, QuantMethod::Symmetric { min, max, .. } if min == -max - 1)
    }

    /// Approximate distance of neighboring quantized values relative to the root mean square of normally distributed
    /// values.
    pub fn typical_step(&self) -> f64 {
        match self.element {
            // The range covers about four standard deviations on each side.
            Element::Signed(bits) | Element::Unsigned(bits) => 8.0 / f64::from((1u32 << bits) - 1),
            Element::E4m3 => 1.0 / 8.0,
            Element::E5m2 | Element::E3m2 => 1.0 / 4.0,
            Element::E2m1 => 1.0 / 2.0,
            Element::E8m0 | Element::Float(_) => self.compute_dtype.unit_roundoff(),
        }
    }

    /// Bits of a quantized value.
    pub fn bits(&self) -> u32 {
        self.element.bits()
    }

    /// Midpoint of the range of unsigned quantized values.
    pub fn midpoint(&self) -> f32 {
        (1u32 << (self.bits() - 1)) as f32
    }

    /// Consecutive values of a row that share a scale; the whole row for row and tensor granularity.
    pub fn group_size(&self, cols: usize) -> usize {
        match self.grouping {
            Grouping::Tensor | Grouping::Row => cols.max(1),
            Grouping::Block(size) => size as usize,
        }
    }

    /// Number of scales of a tensor.
    pub fn scale_count(&self, rows: usize, cols: usize) -> usize {
        match self.grouping {
            _ if self.method == QuantMethod::Unquantized => 0,
            Grouping::Tensor => 1,
            _ => rows * cols.div_ceil(self.group_size(cols)),
        }
    }

    /// Number of second-level scales: one per tensor for NVFP4, one per row for QQQ.
    pub fn outer_scale_count(&self, rows: usize) -> usize {
        match self.method {
            QuantMethod::Nvfp4 => 1,
            QuantMethod::Qqq => rows,
            _ => 0,
        }
    }

    /// Words of 2:4 metadata per row: four bits for every four values.
    pub fn position_words_per_row(&self, cols: usize) -> usize {
        if self.sparse_2to4 { cols.div_ceil(32) } else { 0 }
    }

    /// Words of quantized values per row: whole groups, padded to whole packing blocks.
    pub fn words_per_row(&self, cols: usize) -> usize {
        let padded = cols.next_multiple_of(self.group_size(cols));
        let stored = if self.sparse_2to4 { padded / 2 } else { padded };
        stored.div_ceil(Self::PACKING_BLOCK) * self.bits() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_include_scales_and_zero_points() {
        use Grouping::{Block, Row};
        let int8 = Format::symmetric(8, Row, Dtype::Bf16, Dtype::Bf16);
        assert_eq!(int8.bytes(4096, 4096), 4096 * 4096 + 4096 * 2);
        let int4 = Format::symmetric(4, Block(128), Dtype::Bf16, Dtype::F32);
        assert_eq!(int4.bytes(64, 256), 64 * 256 / 2 + 64 * 2 * 4);
        // Two blocks of 32 per row, each with a scale.
        assert_eq!(Format::mx(Element::E2m1, MxScaling::Ceil).bytes(2, 33), 2 * 64 / 2 + 4);
        assert_eq!(Format::nvfp4().bytes(1, 16), 16 + 4 + 4);
        // The sizes of GGUF: 34 and 18 bytes per block.
        assert_eq!([8, 4].map(|bits| Format::ggml(bits).bytes(2, 64)), [4 * 34, 4 * 18]);
        assert_eq!(Format::asymmetric(Element::Unsigned(3), Block(64), Dtype::F32).bytes(1, 64), 64 * 3 / 8 + 4 + 4);
    }
}
