//! How a tensor is stored small: what a code stands for, which numbers share a scale, and how both are found.

use crate::scalar::rules::Terms;
use crate::{Codes, Dtype, Element, packing};

/// The numbers that share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Grouping {
    /// All of the tensor's.
    Tensor,
    /// A row's: an output channel of a weight, a token of an activation.
    Row,
    /// So many in a row of each row; the last group of a row is filled up with zeros.
    Block(u32),
}

/// How the exponent of a microscaling block's scale is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MxScaling {
    /// Down: the largest magnitudes may saturate.
    Floor,
    /// Up: none does.
    Ceil,
}

/// Which iteration of HQQ is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum HqqIterate {
    /// The one after which the error stopped falling, as torchao does.
    #[default]
    Last,
    /// The one with the least error.
    Best,
}

/// How a group's scale, its zero and its codes are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// The numbers as they are, without scales.
    Plain,
    /// Integers around zero: the largest magnitude over half the range.
    Symmetric {
        /// The smallest code.
        least: i16,
        /// The largest code.
        most: i16,
        /// The smallest scale.
        epsilon: f32,
    },
    /// Integers around an integer zero point; the range always takes in zero.
    Asymmetric {
        /// The smallest scale.
        epsilon: f32,
    },
    /// Unsigned integers around the middle of their range, with a zero in units of the tensor.
    Tinygemm {
        /// The smallest scale.
        epsilon: f32,
    },
    /// Half-quadratic quantization: a zero that is optimized for a sparse error, under a scale from the range.
    Hqq(HqqIterate),
    /// Small floats: the largest magnitude, at least this, over the format's largest number.
    Floats {
        /// The smallest of the largest magnitudes.
        epsilon: f32,
    },
    /// OCP microscaling: small floats under powers of two.
    Mx(MxScaling),
    /// e2m1 under e4m3 under one f32 scale.
    Nvfp4,
    /// 4-bit integers whose group scales are relative to a row's scale of 8-bit integers.
    Qqq,
}

/// What a group's zero means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Zero {
    /// There is none: a number is its code times the scale.
    None,
    /// In steps: (code - zero) times the scale.
    InSteps(Element),
    /// In units of the tensor: (code - middle of the range) times the scale, plus the zero.
    InUnits(Element),
}

impl Zero {
    /// How it is stored.
    pub fn element(self) -> Option<Element> {
        match self {
            Self::None => None,
            Self::InSteps(element) | Self::InUnits(element) => Some(element),
        }
    }
}

/// Words that so many numbers of a type are packed into.
pub fn stored_words(count: usize, element: Element) -> usize {
    (count * element.bits() as usize).div_ceil(32)
}

/// A way to store a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Format {
    /// What a code stands for.
    pub element: Element,
    /// Which numbers share a scale.
    pub grouping: Grouping,
    /// How scale, zero and codes are found.
    pub method: Method,
    /// The type that every step is rounded to: the tensor's own.
    pub steps: Dtype,
    /// How a scale is stored.
    pub scale: Element,
    /// How a zero is stored and used.
    pub zero: Zero,
    /// Of every four numbers of a row only two are stored; the others are zero.
    pub two_of_four: bool,
}

/// The smallest scale of most recipes: f32's machine epsilon.
pub const EPSILON: f32 = f32::EPSILON;

impl Format {
    /// The numbers as they are.
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

    /// The same with another smallest code or smallest scale.
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// Integers with an integer zero point.
    pub fn asymmetric(element: Element, grouping: Grouping, steps: Dtype) -> Self {
        let (method, scale) = (Method::Asymmetric { epsilon: EPSILON }, Element::Float(steps));
        // A zero point is one of the codes.
        Self { element, grouping, method, steps, scale, zero: Zero::InSteps(element), two_of_four: false }
    }

    /// Tinygemm's 4-bit integers, scales and zeros in the tensor's type.
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

    /// QQQ's 4-bit integers.
    pub fn qqq(grouping: Grouping, steps: Dtype) -> Self {
        let (element, scale) = (Element::Signed(4), Element::Float(steps));
        Self { element, grouping, method: Method::Qqq, steps, scale, zero: Zero::None, two_of_four: false }
    }

    /// 8-bit floats, the scale rounded to the tensor's type and kept in f32.
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

    /// OCP microscaling over blocks of 32.
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

    /// NVFP4 over blocks of 16 with a scale of the tensor.
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

    /// The same with scales and zeros stored in f32, as kernels write them.
    pub fn unpacked(self) -> Self {
        let full = Element::Float(Dtype::F32);
        let zero = match self.zero {
            Zero::None => Zero::None,
            Zero::InSteps(_) => Zero::InSteps(full),
            Zero::InUnits(_) => Zero::InUnits(full),
        };
        Self { scale: full, zero, ..self }
    }

    /// Whether a code times its scale is rounded to an integer of the second level's scale.
    pub fn rounds_to_integers(&self) -> bool {
        self.method == Method::Qqq
    }

    /// Whether a number's code depends on all others of the tensor.
    pub fn looks_at_the_whole_tensor(&self) -> bool {
        self.grouping == Grouping::Tensor || self.method == Method::Nvfp4
    }

    /// Whether the largest magnitude lies on the border between two codes, where its number is negative: a rounding before
    /// that decides which of them it gets.
    pub fn splits_its_largest(&self) -> bool {
        matches!(self.method, Method::Symmetric { least, most, .. } if least == -most - 1)
    }

    /// The distance of neighboring codes relative to the root mean square of normal numbers, roughly.
    pub fn typical_step(&self) -> f64 {
        match self.element {
            // The range holds about four standard deviations to each side.
            Element::Signed(bits) | Element::Unsigned(bits) => 8.0 / f64::from((1u32 << bits) - 1),
            Element::E4m3 => 1.0 / 8.0,
            Element::E5m2 | Element::E3m2 => 1.0 / 4.0,
            Element::E2m1 => 1.0 / 2.0,
            Element::E8m0 | Element::Float(_) => self.steps.unit_roundoff(),
        }
    }

    /// Bits of one code.
    pub fn bits(&self) -> u32 {
        self.element.bits()
    }

    /// The numbers its rule is given.
    pub(crate) fn terms(&self) -> Terms {
        let (least, most) = match (self.method, self.element) {
            (Method::Symmetric { least, most, .. }, _) => (i32::from(least), i32::from(most)),
            // Of a small float the exponent of its largest number.
            (Method::Mx(_), Element::E2m1) => (0, 2),
            (Method::Mx(_), _) => (0, 8),
            (_, Element::Signed(bits)) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            (_, element) => (0, (1 << element.bits().min(8)) - 1),
        };
        let range = (most - least) as f32;
        let (divisor, epsilon) = match self.method {
            Method::Symmetric { epsilon, .. } => (range / 2.0, epsilon),
            Method::Asymmetric { epsilon } | Method::Tinygemm { epsilon } => (range, epsilon),
            Method::Floats { epsilon } => (self.element.largest(), epsilon),
            // The smallest scale is the smallest normal number of e4m3.
            Method::Nvfp4 => (self.element.largest(), 1.0 / 64.0),
            Method::Mx(_) | Method::Hqq(_) | Method::Qqq | Method::Plain => (self.element.largest(), 0.0),
        };
        Terms { divisor, epsilon, least, most, mask: u32::MAX >> (32 - self.bits()), blank: 0 }
    }

    /// The middle of the range of unsigned codes.
    pub fn middle(&self) -> f32 {
        (1u32 << (self.bits() - 1)) as f32
    }

    /// Numbers that share a scale in rows of `cols`; the whole row where the whole tensor does.
    pub fn group(&self, cols: usize) -> usize {
        match self.grouping {
            Grouping::Tensor | Grouping::Row => cols.max(1),
            Grouping::Block(size) => size as usize,
        }
    }

    /// Scales of a tensor of this size.
    pub fn scales(&self, rows: usize, cols: usize) -> usize {
        match self.grouping {
            _ if self.method == Method::Plain => 0,
            Grouping::Tensor => 1,
            _ => rows * cols.div_ceil(self.group(cols)),
        }
    }

    /// Scales of the second level: NVFP4 has one for the tensor, QQQ one for each row.
    pub fn outer_scales(&self, rows: usize) -> usize {
        match self.method {
            Method::Nvfp4 => 1,
            Method::Qqq => rows,
            _ => 0,
        }
    }

    /// Words that say which numbers of a row are stored: four bits for every four numbers.
    pub fn kept_words_per_row(&self, cols: usize) -> usize {
        if self.two_of_four { cols.div_ceil(32) } else { 0 }
    }

    /// Words that the codes of a row take: whole groups, and whole blocks of packing.
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
        // Two blocks of 32 are begun, each with its scale.
        assert_eq!(Format::mx(Element::E2m1, MxScaling::Ceil).bytes(2, 33), 2 * 64 / 2 + 4);
        assert_eq!(Format::nvfp4().bytes(1, 16), 16 + 4 + 4);
        assert_eq!(Format::asymmetric(Element::Unsigned(3), Block(64), Dtype::F32).bytes(1, 64), 64 * 3 / 8 + 4 + 4);
    }
}
