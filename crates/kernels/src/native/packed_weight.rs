//! Memory layout and kernel macros of packed weights.

use super::{
    DeviceBuffer, LinearShape,
    driver::DeviceMemory,
    layer_specs::{PackedFormat, PackedSpec},
};
use crate::format::{QuantMethod, ZeroPoint};
use crate::{Dtype, Element, Format, PackedTensor};

/// Bytes of the quantized values of a row.
fn row_bytes(weight: Format, k: usize) -> usize {
    k.next_multiple_of(weight.group().unwrap_or(1)).next_multiple_of(32) / 8 * weight.bits() as usize
}

/// Bytes of densely packed elements; integers are padded to whole words.
fn storage_bytes(count: usize, element: Element) -> usize {
    match element {
        Element::Unsigned(bits) => (count * usize::from(bits)).div_ceil(32) * 4,
        other => count * other.bits() as usize / 8,
    }
}

/// Function of the CUDA sources that loads scales or zero points of this type.
fn load_function(element: Element) -> Option<&'static str> {
    Some(match element {
        Element::Float(Dtype::F32) => "stored_f32",
        Element::Float(Dtype::F16) => "stored_f16",
        Element::Float(Dtype::Bf16) => "stored_bf16",
        Element::E8m0 => "stored_e8m0",
        Element::E4m3 => "stored_e4m3",
        _ => return None,
    })
}

/// Mantissa bits and exponent bias of a small float.
fn float_layout(element: Element) -> Option<(u32, u32)> {
    match element {
        Element::E4m3 => Some((3, 7)),
        Element::E3m2 => Some((2, 3)),
        Element::E2m1 => Some((1, 1)),
        _ => None,
    }
}

impl PackedSpec {
    /// Dtype of the multiplied operands. bf16 represents microscaling values exactly and has the range of f32.
    pub(super) fn operand_dtype(self) -> Dtype {
        if self.input.is_some() { Dtype::Bf16 } else { self.kind }
    }

    /// True if weight and input have one tensor-wide scale each, applied to the accumulators.
    pub(super) fn has_tensor_scale(self) -> bool {
        self.input.is_some_and(|input| input.method == QuantMethod::Nvfp4)
    }

    /// True if pairs of values can be dequantized in the operand dtype with a single rounding, i.e. it represents
    /// scales and zero points exactly.
    pub(super) fn supports_pair_dequantize(self) -> bool {
        let holds = |element: Element| match element {
            Element::E4m3 => self.operand_dtype() != Dtype::F32,
            Element::E8m0 => self.operand_dtype() == Dtype::Bf16,
            element => element == Element::Float(self.operand_dtype()),
        };
        let zero = match self.weight.zero {
            ZeroPoint::None | ZeroPoint::BeforeScale(Element::Unsigned(_)) => true,
            ZeroPoint::AfterScale(zero) | ZeroPoint::BeforeScale(zero) => holds(zero),
        };
        self.operand_dtype() != Dtype::F32 && (self.weight.group().is_none() || (holds(self.weight.scale) && zero))
    }

    /// Parts of a weight with the number of bytes that a kernel reads.
    pub(super) fn reads(self, shape: LinearShape) -> Vec<(&'static str, usize)> {
        let LinearShape { k, n, .. } = shape;
        let scales = self.weight.scale_count(n, k);
        let mut reads = vec![
            ("quantized values", n * row_bytes(self.weight, k)),
            ("scales", storage_bytes(scales, self.weight.scale)),
        ];
        reads.extend(self.weight.zero.element().map(|zero| ("zeros", storage_bytes(scales, zero))));
        reads
    }

    /// Tensor-wide scales of weight and input, if the format has them.
    pub(super) fn tensor_scale_reads(self) -> Vec<(&'static str, usize)> {
        if self.has_tensor_scale() { vec![("the weight's scale", 4), ("the input's scale", 4)] } else { Vec::new() }
    }

    /// Macros of the packed-weight header and of the GEMM sources, for kernels that are compiled for one k.
    pub(super) fn macros_for_k(self, k: usize) -> Vec<String> {
        let mut macros = vec![format!("K={k}u")];
        macros.extend(self.macros());
        macros
    }

    /// Macros of the packed-weight header and of the GEMM sources.
    pub(super) fn macros(self) -> Vec<String> {
        let codes = self.weight;
        let mut macros = vec![format!("BITS={}u", codes.bits())];
        macros.extend(load_function(codes.scale).map(|scale| format!("SCALE_DTYPE={scale}")));
        macros.extend(codes.group().map(|group| format!("GROUP_SIZE={group}u")));
        match codes.element {
            Element::Signed(_) => macros.push("SIGNED_VALUES".into()),
            Element::Unsigned(_) => macros.push("UNSIGNED_VALUES".into()),
            float => {
                let (mantissa, bias) = float_layout(float).unwrap_or_default();
                macros.extend([format!("MANTISSA_BITS={mantissa}u"), format!("EXPONENT_BIAS={bias}u")]);
            }
        }
        match codes.zero {
            ZeroPoint::None => {}
            ZeroPoint::BeforeScale(_) => macros.push("ZERO_POINT_BEFORE_SCALE".into()),
            ZeroPoint::AfterScale(_) => macros.push("ZERO_POINT_AFTER_SCALE".into()),
        }
        macros.extend(codes.zero.element().map(|zero| match load_function(zero) {
            Some(name) => format!("ZERO_POINT_DTYPE={name}"),
            None => format!("ZERO_POINT_BITS={}u", zero.bits()),
        }));
        if self.kind != self.operand_dtype() {
            macros.push(match self.kind {
                Dtype::F32 => "OUTPUT_F32".into(),
                Dtype::F16 => "OUTPUT_F16".into(),
                Dtype::Bf16 => "OUTPUT_BF16".into(),
            });
        }
        macros.extend(self.has_tensor_scale().then(|| "TENSOR_SCALES".into()));
        macros.extend(self.has_input_scales.then(|| "INPUT_SCALES".into()));
        macros
    }
}

/// Parts from which a kernel dequantizes, without the tensor-wide scale.
pub(super) fn weight_parts(weight: PackedTensor<&DeviceBuffer>) -> impl Iterator<Item = &DeviceMemory> {
    [weight.codes].into_iter().chain(weight.scales).chain(weight.zeros).map(|part| &part.memory)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::layer_specs::tests::{formats, weight_only};
    use super::*;
    use crate::format::{Grouping, MxScaling};

    /// Formats with every element type and with every type of scales and zero points that recipes use. Low-bit formats
    /// are covered with one dtype of x each; their sources are compiled for all dtypes.
    pub(in crate::native) fn all_specs() -> Vec<PackedSpec> {
        let of_kind = |at: usize, kind: Dtype| {
            let float = Element::Float(kind);
            let group = |element, group, zero| Format { element, scale: float, zero, ..formats::int4(group, kind) };
            let uint =
                |bits, size| group(Element::Unsigned(bits), size, ZeroPoint::BeforeScale(Element::Unsigned(bits)));
            let mut few: Vec<_> = (1..=8).map(|bits| uint(bits, 64)).collect();
            few.extend([uint(8, 20), uint(4, 8), uint(6, 16), uint(2, 48), uint(1, 32)]);
            few.extend([1, 3, 8].map(|bits| group(Element::Unsigned(bits), 64, ZeroPoint::AfterScale(float))));
            few.push(group(Element::Signed(4), 128, ZeroPoint::None));
            let mut codes = vec![formats::int8(kind), formats::e4m3(), formats::int4(128, Dtype::Bf16)];
            codes.extend([32, 128].map(|size| formats::int4(size, kind)));
            codes.push(Format { element: Element::E3m2, ..formats::int8(kind) });
            codes.push(group(Element::Unsigned(4), 64, ZeroPoint::BeforeScale(float)));
            codes.extend(few.into_iter().skip(at).step_by(Dtype::ALL.len()));
            let mut forms: Vec<_> = codes.into_iter().map(|codes| weight_only(kind, codes)).collect();
            forms.extend(microscaling(kind));
            forms
        };
        Dtype::ALL.into_iter().enumerate().flat_map(|(at, kind)| of_kind(at, kind)).collect()
    }

    /// Formats with a fake-quantized input.
    pub(in crate::native) fn microscaling(kind: Dtype) -> [PackedSpec; 3] {
        let mx = |element| Format::mx(element, MxScaling::Ceil);
        [mx(Element::E4m3), mx(Element::E2m1), Format::nvfp4()].map(|weight| PackedSpec {
            kind,
            weight,
            input: Some(weight),
            has_input_scales: false,
        })
    }

    #[test]
    fn rows_are_padded_to_groups_and_vectors() {
        let shape = LinearShape { m: 1, k: 129, n: 3 };
        let reads = |codes| weight_only(Dtype::Bf16, codes).reads(shape);
        assert_eq!(reads(formats::int8(Dtype::Bf16)), [("quantized values", 3 * 160), ("scales", 6)]);
        let int4 = reads(formats::int4(128, Dtype::F32));
        assert_eq!(int4, [("quantized values", 3 * 128), ("scales", 24), ("zeros", 24)]);
        let three = Format::asymmetric(Element::Unsigned(3), Grouping::Block(32), Dtype::Bf16);
        // Fifteen zero points of three bits fill two words.
        assert_eq!(reads(three), [("quantized values", 3 * 160 * 3 / 8), ("scales", 30), ("zeros", 8)]);
        for spec in all_specs() {
            for k in [1, 17, 127, 129, 1000, 4096] {
                let (_, bytes) = spec.reads(LinearShape { m: 1, k, n: 1 })[0];
                let piece = 4 * spec.weight.vector_words();
                assert!(bytes.is_multiple_of(piece), "{spec:?}");
                assert!(bytes >= k.div_ceil(spec.weight.values_per_vector()) * piece, "{spec:?}");
            }
        }
    }
}
