//! Tensor formats: element type, granularity of scales, and quantization method.

use crate::scalar::rules::Terms;
use crate::{Codes, Dtype, Element, packing};

/// Granularity of scales: the values that share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
#[non_exhaustive]
pub enum MxScaling {
    /// Down: the largest magnitudes may saturate.
    Floor,
    /// Up: no value saturates.
    Ceil,
}

/// HQQ iterate whose zero points are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum HqqIterate {
    /// Iterate after which the error stopped falling, as in torchao.
    #[default]
    Last,
    /// Iterate with the smallest error.
    Best,
}

/// Quantization method: how scale, zero point and quantized values of a group are computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Not quantized; no scales.
    Plain,
    /// Symmetric integers: scale = amax / half the range.
    Symmetric {
        /// Smallest quantized value.
        least: i16,
        /// Largest quantized value.
        most: i16,
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
}

/// Role and element type of a group's zero point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Zero {
    /// No zero point: value = q * scale.
    None,
    /// Subtracted before scaling: value = (q - zero) * scale.
    InSteps(Element),
    /// Added after scaling: value = (q - midpoint) * scale + zero.
    InUnits(Element),
}

impl Zero {
    /// Element type of the stored zero point.
    pub fn element(self) -> Option<Element> {
        match self {
            Self::None => None,
            Self::InSteps(element) | Self::InUnits(element) => Some(element),
        }
    }
}

/// Words that hold `count` packed values of an element type.
pub fn stored_words(count: usize, element: Element) -> usize {
    (count * element.bits() as usize).div_ceil(32)
}

/// Storage format of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Format {
    /// Element type of the quantized values.
    pub element: Element,
    /// Granularity of scales.
    pub grouping: Grouping,
    /// Quantization method.
    pub method: Method,
    /// Dtype of the source tensor; every step of the method is rounded to it.
    pub steps: Dtype,
    /// Element type of stored scales.
    pub scale: Element,
    /// Role and element type of zero points.
    pub zero: Zero,
    /// 2:4 sparsity: of four consecutive values of a row two are stored, the others are zero.
    pub two_of_four: bool,
}

/// Smallest scale of most recipes: the machine epsilon of f32.
pub const EPSILON: f32 = f32::EPSILON;

impl Format {
    /// Unquantized values.
    pub fn plain(dtype: Dtype) -> Self {
        let (element, grouping) = (Element::Float(dtype), Grouping::Row);
        let scale = Element::Float(Dtype::F32);
        Self { element, grouping, method: Method::Plain, steps: dtype, scale, zero: Zero::None, two_of_four: false }
    }

    /// Symmetric integers over the whole range of `bits`.
    pub fn symmetric(bits: u8, grouping: Grouping, steps: Dtype, scale: Dtype) -> Self {
        let half = 1i16 << (bits - 1);
        let method = Method::Symmetric { least: -half, most: half - 1, epsilon: EPSILON };
        let (element, scale) = (Element::Signed(bits), Element::Float(scale));
        Self { element, grouping, method, steps, scale, zero: Zero::None, two_of_four: false }
    }

    /// Replaces the method, for another range or smallest scale.
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// Integers with an integer zero point.
    pub fn asymmetric(element: Element, grouping: Grouping, steps: Dtype) -> Self {
        let (method, scale) = (Method::Asymmetric { epsilon: EPSILON }, Element::Float(steps));
        // The zero point is itself a quantized value.
        Self { element, grouping, method, steps, scale, zero: Zero::InSteps(element), two_of_four: false }
    }

    /// 4-bit integers of tinygemm; scales and zero points in the dtype of the tensor.
    pub fn tinygemm(grouping: Grouping, steps: Dtype) -> Self {
        let (method, scale) = (Method::Tinygemm { epsilon: 1e-6 }, Element::Float(steps));
        Self {
            element: Element::Unsigned(4),
            grouping,
            method,
            steps,
            scale,
            zero: Zero::InUnits(scale),
            two_of_four: false,
        }
    }

    /// Unsigned integers by half-quadratic quantization.
    pub fn hqq(bits: u8, grouping: Grouping, steps: Dtype, scale: Dtype, zero: Zero) -> Self {
        let (element, method) = (Element::Unsigned(bits), Method::Hqq(HqqIterate::default()));
        Self { element, grouping, method, steps, scale: Element::Float(scale), zero, two_of_four: false }
    }

    /// 4-bit integers of QQQ.
    pub fn qqq(grouping: Grouping, steps: Dtype) -> Self {
        let (element, scale) = (Element::Signed(4), Element::Float(steps));
        Self { element, grouping, method: Method::Qqq, steps, scale, zero: Zero::None, two_of_four: false }
    }

    /// 8-bit floats; the scale is rounded to the dtype of the tensor and stored in f32.
    pub fn float8(element: Element, grouping: Grouping, steps: Dtype) -> Self {
        let method = Method::Floats { epsilon: 0.0 };
        Self {
            element,
            grouping,
            method,
            steps,
            scale: Element::Float(Dtype::F32),
            zero: Zero::None,
            two_of_four: false,
        }
    }

    /// OCP microscaling with blocks of 32.
    pub fn mx(element: Element, scaling: MxScaling) -> Self {
        let grouping = Grouping::Block(32);
        let method = Method::Mx(scaling);
        Self {
            element,
            grouping,
            method,
            steps: Dtype::F32,
            scale: Element::E8m0,
            zero: Zero::None,
            two_of_four: false,
        }
    }

    /// NVFP4 with blocks of 16 and a tensor scale.
    pub fn nvfp4() -> Self {
        let (element, grouping) = (Element::E2m1, Grouping::Block(16));
        Self {
            element,
            grouping,
            method: Method::Nvfp4,
            steps: Dtype::F32,
            scale: Element::E4m3,
            zero: Zero::None,
            two_of_four: false,
        }
    }

    /// Replaces the element type of scales and zero points by f32, as kernels write them.
    pub fn unpacked(self) -> Self {
        let full = Element::Float(Dtype::F32);
        let zero = match self.zero {
            Zero::None => Zero::None,
            Zero::InSteps(_) => Zero::InSteps(full),
            Zero::InUnits(_) => Zero::InUnits(full),
        };
        Self { scale: full, zero, ..self }
    }

    /// True if the quantized value times its group scale is rounded to int8 before the row scale is applied.
    pub fn rounds_to_integers(&self) -> bool {
        self.method == Method::Qqq
    }

    /// True if a quantized value depends on amax of the whole tensor.
    pub fn looks_at_the_whole_tensor(&self) -> bool {
        self.grouping == Grouping::Tensor || self.method == Method::Nvfp4
    }

    /// True if a negative amax lies halfway between two quantized values, so that an earlier rounding decides which of
    /// them it becomes.
    pub fn splits_its_largest(&self) -> bool {
        matches!(self.method, Method::Symmetric { least, most, .. } if least == -most - 1)
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
            Element::E8m0 | Element::Float(_) => self.steps.unit_roundoff(),
        }
    }

    /// Bits of a quantized value.
    pub fn bits(&self) -> u32 {
        self.element.bits()
    }

    /// Parameters of the quantization rule.
    pub(crate) fn terms(&self) -> Terms {
        let (min, max) = match (self.method, self.element) {
            (Method::Symmetric { least: min, most: max, .. }, _) => (i32::from(min), i32::from(max)),
            // For small floats: the exponent of the largest value.
            (Method::Mx(_), Element::E2m1) => (0, 2),
            (Method::Mx(_), _) => (0, 8),
            (_, Element::Signed(bits)) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            (_, element) => (0, (1 << element.bits().min(8)) - 1),
        };
        let range = (max - min) as f32;
        let (divisor, epsilon) = match self.method {
            Method::Symmetric { epsilon, .. } => (range / 2.0, epsilon),
            Method::Asymmetric { epsilon } | Method::Tinygemm { epsilon } => (range, epsilon),
            Method::Floats { epsilon } => (self.element.largest(), epsilon),
            // The smallest block scale is the smallest normal value of e4m3.
            Method::Nvfp4 => (self.element.largest(), 1.0 / 64.0),
            Method::Mx(_) | Method::Hqq(_) | Method::Qqq | Method::Plain => (self.element.largest(), 0.0),
        };
        Terms { divisor, epsilon, least: min, most: max, mask: u32::MAX >> (32 - self.bits()), blank: 0 }
    }

    /// Midpoint of the range of unsigned quantized values.
    pub fn middle(&self) -> f32 {
        (1u32 << (self.bits() - 1)) as f32
    }

    /// Consecutive values of a row that share a scale; the whole row for row and tensor granularity.
    pub fn group(&self, cols: usize) -> usize {
        match self.grouping {
            Grouping::Tensor | Grouping::Row => cols.max(1),
            Grouping::Block(size) => size as usize,
        }
    }

    /// Number of scales of a tensor.
    pub fn scales(&self, rows: usize, cols: usize) -> usize {
        match self.grouping {
            _ if self.method == Method::Plain => 0,
            Grouping::Tensor => 1,
            _ => rows * cols.div_ceil(self.group(cols)),
        }
    }

    /// Number of second-level scales: one per tensor for NVFP4, one per row for QQQ.
    pub fn outer_scales(&self, rows: usize) -> usize {
        match self.method {
            Method::Nvfp4 => 1,
            Method::Qqq => rows,
            _ => 0,
        }
    }

    /// Words of 2:4 metadata per row: four bits for every four values.
    pub fn kept_words_per_row(&self, cols: usize) -> usize {
        if self.two_of_four { cols.div_ceil(32) } else { 0 }
    }

    /// Words of quantized values per row: whole groups, padded to whole packing blocks.
    pub fn words_per_row(&self, cols: usize) -> usize {
        let padded = cols.next_multiple_of(self.group(cols));
        packing::words(if self.two_of_four { padded / 2 } else { padded }, self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_tensor_is_small_and_counts_what_belongs_to_it() {
        use Grouping::{Block, Row};
        let int8 = Format::symmetric(8, Row, Dtype::Bf16, Dtype::Bf16);
        assert_eq!(int8.bytes(4096, 4096), 4096 * 4096 + 4096 * 2);
        let int4 = Format::symmetric(4, Block(128), Dtype::Bf16, Dtype::F32);
        assert_eq!(int4.bytes(64, 256), 64 * 256 / 2 + 64 * 2 * 4);
        // Two blocks of 32 per row, each with a scale.
        assert_eq!(Format::mx(Element::E2m1, MxScaling::Ceil).bytes(2, 33), 2 * 64 / 2 + 4);
        assert_eq!(Format::nvfp4().bytes(1, 16), 16 + 4 + 4);
        assert_eq!(Format::asymmetric(Element::Unsigned(3), Block(64), Dtype::F32).bytes(1, 64), 64 * 3 / 8 + 4 + 4);
    }
}
