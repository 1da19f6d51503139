//! Memory layout and kernel macros of packed weights.

use super::{DeviceBuffer, LinearShape, NativeError, driver::DeviceMemory};
use crate::{Dtype, Element, InputFormat, PackedLinearSpec, PackedWeightFormat, ZeroPoint};

/// Packed weight on the device.
#[derive(Debug)]
pub struct PackedWeight {
    /// Quantized values.
    pub codes: DeviceBuffer,
    /// Scales.
    pub scales: DeviceBuffer,
    /// Zero points, if the format has any.
    pub zeros: Option<DeviceBuffer>,
    /// f32 scale of the whole tensor, if the format has one.
    pub tensor_scale: Option<DeviceBuffer>,
}

impl PackedWeightFormat {
    /// Name of the format in kernel names.
    pub(super) fn name(self) -> String {
        let number = match self.element {
            Element::Signed(bits) => format!("int{bits}"),
            Element::Unsigned(bits) => format!("uint{bits}"),
            float => float.to_string(),
        };
        self.group.map_or(number.clone(), |group| format!("{number}_{group}"))
    }

    fn bits(self) -> usize {
        self.element.bits() as usize
    }

    /// Words per vector access of a thread: 16 bytes, or the words of 32 values.
    pub(super) fn vector_words(self) -> usize {
        match self.bits() {
            8 => 4,
            bits => bits,
        }
    }

    /// Values per vector access.
    pub(super) fn values_per_vector(self) -> usize {
        self.vector_words() * 32 / self.bits()
    }

    fn row_bytes(self, k: usize) -> usize {
        k.next_multiple_of(self.group.unwrap_or(1)).next_multiple_of(32) / 8 * self.bits()
    }

    fn scales_per_row(self, k: usize) -> usize {
        self.group.map_or(1, |group| k.div_ceil(group))
    }

    fn zero_dtype(self) -> Option<Element> {
        match self.zero {
            ZeroPoint::None => None,
            ZeroPoint::Integer(zero) | ZeroPoint::Float(zero) => Some(zero),
        }
    }
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

impl PackedLinearSpec {
    /// Returns an error for formats without a kernel, and for groups that do not fill whole words.
    pub(super) fn validate(self) -> Result<Self, NativeError> {
        let codes = self.weight;
        let number = match (codes.element, codes.zero) {
            (Element::Unsigned(bits), ZeroPoint::Integer(_) | ZeroPoint::Float(_)) => (1..=8).contains(&bits),
            (Element::Signed(bits), ZeroPoint::None) => (2..=8).contains(&bits),
            (float, ZeroPoint::None) => float_layout(float).is_some(),
            _ => false,
        };
        let zero = match codes.zero {
            ZeroPoint::Integer(Element::Unsigned(bits)) => (1..=8).contains(&bits),
            ZeroPoint::Integer(zero) | ZeroPoint::Float(zero) => matches!(zero, Element::Float(_)),
            ZeroPoint::None => true,
        };
        if !number
            || !zero
            || load_function(codes.scale).is_none()
            || (codes.group.is_none() && codes.zero_dtype().is_some())
        {
            return Err(NativeError::UnsupportedWeightFormat { codes: format!("{codes:?}") });
        }
        match codes.group {
            Some(group) if group == 0 || group > i32::MAX as usize || !(group * codes.bits()).is_multiple_of(32) => {
                Err(NativeError::InvalidGroup { group, bits: codes.bits() })
            }
            _ => Ok(self),
        }
    }

    /// Dtype of the multiplied operands. bf16 represents microscaling values exactly and has the range of f32.
    pub(super) fn operand_dtype(self) -> Dtype {
        match self.input {
            InputFormat::Unquantized => self.kind,
            InputFormat::Mx(_) | InputFormat::Nvfp4 => Dtype::Bf16,
        }
    }

    /// True if weight and input have one tensor-wide scale each, applied to the accumulators.
    pub(super) fn has_tensor_scale(self) -> bool {
        self.input == InputFormat::Nvfp4
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
            ZeroPoint::None | ZeroPoint::Integer(Element::Unsigned(_)) => true,
            ZeroPoint::Float(zero) | ZeroPoint::Integer(zero) => holds(zero),
        };
        self.operand_dtype() != Dtype::F32 && (self.weight.group.is_none() || (holds(self.weight.scale) && zero))
    }

    /// Parts of a weight with the number of bytes that a kernel reads.
    pub(super) fn reads(self, shape: LinearShape) -> Vec<(&'static str, usize)> {
        let LinearShape { k, n, .. } = shape;
        let scales = n * self.weight.scales_per_row(k);
        let mut reads = vec![
            ("quantized values", n * self.weight.row_bytes(k)),
            ("scales", storage_bytes(scales, self.weight.scale)),
        ];
        reads.extend(self.weight.zero_dtype().map(|zero| ("zeros", storage_bytes(scales, zero))));
        reads
    }

    /// Tensor-wide scales of weight and input, if the format has them.
    pub(super) fn tensor_scale_reads(self) -> Vec<(&'static str, usize)> {
        if self.has_tensor_scale() { vec![("the weight's scale", 4), ("the input's scale", 4)] } else { Vec::new() }
    }

    /// Macros of the packed-weight header and of the GEMM sources.
    pub(super) fn macros(self, k: usize) -> Vec<String> {
        let codes = self.weight;
        let mut macros = vec![format!("K={k}u"), format!("BITS={}u", codes.bits())];
        macros.extend(load_function(codes.scale).map(|scale| format!("SCALE_DTYPE={scale}")));
        macros.extend(codes.group.map(|group| format!("GROUP_SIZE={group}u")));
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
            ZeroPoint::Integer(_) => macros.push("ZERO_POINT_BEFORE_SCALE".into()),
            ZeroPoint::Float(_) => macros.push("ZERO_POINT_AFTER_SCALE".into()),
        }
        macros.extend(codes.zero_dtype().map(|zero| match load_function(zero) {
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
        macros
    }
}

impl PackedWeight {
    /// Parts from which a kernel dequantizes, without the tensor-wide scale.
    pub(super) fn parts(&self) -> impl Iterator<Item = &DeviceMemory> {
        [&self.codes, &self.scales].into_iter().chain(&self.zeros).map(|part| &part.memory)
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> usize {
        [&self.codes, &self.scales]
            .into_iter()
            .chain(&self.zeros)
            .chain(&self.tensor_scale)
            .map(DeviceBuffer::len)
            .sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Formats with every element type and with every type of scales and zero points that recipes use. Low-bit formats
    /// are covered with one dtype of x each; their sources are compiled for all dtypes.
    pub(in crate::native) fn all_specs() -> Vec<PackedLinearSpec> {
        let of_kind = |at: usize, kind: Dtype| {
            let float = Element::Float(kind);
            let group =
                |number, group, zero| PackedWeightFormat { element: number, group: Some(group), scale: float, zero };
            let uint = |bits, size| group(Element::Unsigned(bits), size, ZeroPoint::Integer(Element::Unsigned(bits)));
            let mut few: Vec<_> = (1..=8).map(|bits| uint(bits, 64)).collect();
            few.extend([uint(8, 20), uint(4, 8), uint(6, 16), uint(2, 48), uint(1, 32)]);
            few.extend([1, 3, 8].map(|bits| group(Element::Unsigned(bits), 64, ZeroPoint::Float(float))));
            few.push(group(Element::Signed(4), 128, ZeroPoint::None));
            let mut codes = vec![
                PackedWeightFormat::int8(kind),
                PackedWeightFormat::e4m3(),
                PackedWeightFormat::int4(128, Dtype::Bf16),
            ];
            codes.extend([32, 128].map(|size| PackedWeightFormat::int4(size, kind)));
            codes.push(PackedWeightFormat { element: Element::E3m2, ..PackedWeightFormat::int8(kind) });
            codes.push(group(Element::Unsigned(4), 64, ZeroPoint::Integer(float)));
            codes.extend(few.into_iter().skip(at).step_by(Dtype::ALL.len()));
            let mut forms: Vec<_> = codes.into_iter().map(|codes| PackedLinearSpec::weight_only(kind, codes)).collect();
            forms.extend(microscaling(kind));
            forms
        };
        Dtype::ALL.into_iter().enumerate().flat_map(|(at, kind)| of_kind(at, kind)).collect()
    }

    /// Formats with a fake-quantized input.
    pub(in crate::native) fn microscaling(kind: Dtype) -> [PackedLinearSpec; 3] {
        let mx =
            |number| PackedLinearSpec { kind, weight: PackedWeightFormat::mx(number), input: InputFormat::Mx(number) };
        let nvfp4 = PackedLinearSpec { kind, weight: PackedWeightFormat::nvfp4(), input: InputFormat::Nvfp4 };
        [mx(Element::E4m3), mx(Element::E2m1), nvfp4]
    }

    #[test]
    fn rows_are_padded_to_groups_and_vectors() {
        let shape = LinearShape { m: 1, k: 129, n: 3 };
        let reads = |codes| PackedLinearSpec::weight_only(Dtype::Bf16, codes).reads(shape);
        assert_eq!(reads(PackedWeightFormat::int8(Dtype::Bf16)), [("quantized values", 3 * 160), ("scales", 6)]);
        let int4 = reads(PackedWeightFormat::int4(128, Dtype::F32));
        assert_eq!(int4, [("quantized values", 3 * 128), ("scales", 24), ("zeros", 24)]);
        let three = PackedWeightFormat { element: Element::Unsigned(3), ..PackedWeightFormat::int4(32, Dtype::Bf16) };
        let three = PackedWeightFormat { zero: ZeroPoint::Integer(Element::Unsigned(3)), ..three };
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

    #[test]
    fn unsupported_formats_and_groups_are_rejected() {
        let check = |codes| PackedLinearSpec::weight_only(Dtype::Bf16, codes).validate();
        for group in [0, 1, 31, 44] {
            assert_eq!(
                check(PackedWeightFormat::int4(group, Dtype::Bf16)),
                Err(NativeError::InvalidGroup { group, bits: 4 })
            );
        }
        let int4 = PackedWeightFormat::int4(32, Dtype::Bf16);
        let unknown = [
            PackedWeightFormat { group: None, ..int4 },
            PackedWeightFormat { zero: ZeroPoint::None, ..int4 },
            PackedWeightFormat { element: Element::E5m2, ..PackedWeightFormat::e4m3() },
            PackedWeightFormat { scale: Element::E2m1, ..int4 },
        ];
        for codes in unknown {
            assert!(matches!(check(codes), Err(NativeError::UnsupportedWeightFormat { .. })), "{codes:?}");
        }
        assert!(all_specs().into_iter().all(|spec| spec.validate().is_ok()));
    }
}
