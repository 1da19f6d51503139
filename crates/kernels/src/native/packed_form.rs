//! How a packed weight lies in memory.

use super::{Buffer, LinearShape, NativeError, driver::Memory};
use crate::{CodeZero, Dtype, Element, InputNumbers, PackedForm, WeightCodes};

/// A packed weight on the device.
#[derive(Debug)]
pub struct PackedWeight {
    /// Its codes.
    pub codes: Buffer,
    /// Its scales.
    pub scales: Buffer,
    /// Its zeros, if it has any.
    pub zeros: Option<Buffer>,
    /// The f32 scale of all of it, if it has one.
    pub outer: Option<Buffer>,
}

impl WeightCodes {
    /// Their name in those of kernels.
    pub(super) fn name(self) -> String {
        let number = match self.number {
            Element::Signed(bits) => format!("int{bits}"),
            Element::Unsigned(bits) => format!("uint{bits}"),
            float => float.to_string(),
        };
        self.group.map_or(number.clone(), |group| format!("{number}_{group}"))
    }

    fn bits(self) -> usize {
        self.number.bits() as usize
    }

    /// Words that a thread takes at once: 16 bytes, or as many as 32 codes fill.
    pub(super) fn piece_words(self) -> usize {
        match self.bits() {
            8 => 4,
            bits => bits,
        }
    }

    /// Codes in them.
    pub(super) fn piece_codes(self) -> usize {
        self.piece_words() * 32 / self.bits()
    }

    fn row_bytes(self, k: usize) -> usize {
        k.next_multiple_of(self.group.unwrap_or(1)).next_multiple_of(32) / 8 * self.bits()
    }

    fn scales_per_row(self, k: usize) -> usize {
        self.group.map_or(1, |group| k.div_ceil(group))
    }

    fn zero(self) -> Option<Element> {
        match self.zero {
            CodeZero::Nothing => None,
            CodeZero::InSteps(zero) | CodeZero::InUnits(zero) => Some(zero),
        }
    }
}

/// Bytes of numbers that lie without gaps; integers are read as words.
fn bytes_of(count: usize, element: Element) -> usize {
    match element {
        Element::Unsigned(bits) => (count * usize::from(bits)).div_ceil(32) * 4,
        other => count * other.bits() as usize / 8,
    }
}

/// What sources call a type of scales and zeros.
fn stored_as(element: Element) -> Option<&'static str> {
    Some(match element {
        Element::Float(Dtype::F32) => "as_f32",
        Element::Float(Dtype::F16) => "as_f16",
        Element::Float(Dtype::Bf16) => "as_bf16",
        Element::E8m0 => "as_e8m0",
        Element::E4m3 => "as_e4m3",
        _ => return None,
    })
}

/// A small float's bits of mantissa, and the bias of its exponent.
fn small_float(element: Element) -> Option<(u32, u32)> {
    match element {
        Element::E4m3 => Some((3, 7)),
        Element::E3m2 => Some((2, 3)),
        Element::E2m1 => Some((1, 1)),
        _ => None,
    }
}

impl PackedForm {
    /// Refuses codes that kernels do not know, and groups that do not fill whole words.
    pub(super) fn checked(self) -> Result<Self, NativeError> {
        let codes = self.codes;
        let number = match (codes.number, codes.zero) {
            (Element::Unsigned(bits), CodeZero::InSteps(_) | CodeZero::InUnits(_)) => (1..=8).contains(&bits),
            (Element::Signed(bits), CodeZero::Nothing) => (2..=8).contains(&bits),
            (float, CodeZero::Nothing) => small_float(float).is_some(),
            _ => false,
        };
        let zero = match codes.zero {
            CodeZero::InSteps(Element::Unsigned(bits)) => (1..=8).contains(&bits),
            CodeZero::InSteps(zero) | CodeZero::InUnits(zero) => matches!(zero, Element::Float(_)),
            CodeZero::Nothing => true,
        };
        if !number || !zero || stored_as(codes.scale).is_none() || (codes.group.is_none() && codes.zero().is_some()) {
            return Err(NativeError::WeightCodes { codes: format!("{codes:?}") });
        }
        match codes.group {
            Some(group) if group == 0 || group > i32::MAX as usize || !(group * codes.bits()).is_multiple_of(32) => {
                Err(NativeError::InvalidGroup { group, bits: codes.bits() })
            }
            _ => Ok(self),
        }
    }

    /// The type of the numbers that are multiplied. Those of microscaling are exact in bf16, which has the range of f32.
    pub(super) fn factors(self) -> Dtype {
        match self.input {
            InputNumbers::AsTheyAre => self.kind,
            InputNumbers::Mx(_) | InputNumbers::Nvfp4 => Dtype::Bf16,
        }
    }

    /// Whether the weight and the input have a scale each that multiplies the sums.
    pub(super) fn has_outer(self) -> bool {
        self.input == InputNumbers::Nvfp4
    }

    /// Whether numbers can be made of pairs of codes in the type of the factors with one rounding: it holds scales and zeros.
    pub(super) fn scales_pairs(self) -> bool {
        let holds = |element: Element| match element {
            Element::E4m3 => self.factors() != Dtype::F32,
            Element::E8m0 => self.factors() == Dtype::Bf16,
            element => element == Element::Float(self.factors()),
        };
        let zero = match self.codes.zero {
            CodeZero::Nothing | CodeZero::InSteps(Element::Unsigned(_)) => true,
            CodeZero::InUnits(zero) | CodeZero::InSteps(zero) => holds(zero),
        };
        self.factors() != Dtype::F32 && (self.codes.group.is_none() || (holds(self.codes.scale) && zero))
    }

    /// The parts of a weight with the bytes that a kernel reads of each.
    pub(super) fn reads(self, shape: LinearShape) -> Vec<(&'static str, usize)> {
        let LinearShape { k, n, .. } = shape;
        let scales = n * self.codes.scales_per_row(k);
        let mut reads = vec![("codes", n * self.codes.row_bytes(k)), ("scales", bytes_of(scales, self.codes.scale))];
        reads.extend(self.codes.zero().map(|zero| ("zeros", bytes_of(scales, zero))));
        reads
    }

    /// The scales of the whole weight and the whole input, where they have one.
    pub(super) fn outer_reads(self) -> Vec<(&'static str, usize)> {
        if self.has_outer() { vec![("the weight's scale", 4), ("the input's scale", 4)] } else { Vec::new() }
    }

    /// What `packed.cuh` needs to know, and sources of products.
    pub(super) fn macros(self, k: usize) -> Vec<String> {
        let codes = self.codes;
        let mut macros = vec![format!("K={k}u"), format!("BITS={}u", codes.bits())];
        macros.extend(stored_as(codes.scale).map(|scale| format!("SCALE={scale}")));
        macros.extend(codes.group.map(|group| format!("GROUP={group}u")));
        match codes.number {
            Element::Signed(_) => macros.push("NUMBER_SIGNED".into()),
            Element::Unsigned(_) => macros.push("NUMBER_UNSIGNED".into()),
            float => {
                let (mantissa, bias) = small_float(float).unwrap_or_default();
                macros.extend([format!("MANTISSA={mantissa}u"), format!("BIAS={bias}u")]);
            }
        }
        match codes.zero {
            CodeZero::Nothing => {}
            CodeZero::InSteps(_) => macros.push("ZERO_IN_STEPS".into()),
            CodeZero::InUnits(_) => macros.push("ZERO_IN_UNITS".into()),
        }
        macros.extend(codes.zero().map(|zero| match stored_as(zero) {
            Some(name) => format!("ZERO={name}"),
            None => format!("ZERO_BITS={}u", zero.bits()),
        }));
        if self.kind != self.factors() {
            macros.push(match self.kind {
                Dtype::F32 => "OUTPUT_F32".into(),
                Dtype::F16 => "OUTPUT_F16".into(),
                Dtype::Bf16 => "OUTPUT_BF16".into(),
            });
        }
        macros.extend(self.has_outer().then(|| "OUTER".into()));
        macros
    }
}

impl PackedWeight {
    /// What a kernel makes the numbers of, without the scale of all.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Memory> {
        [&self.codes, &self.scales].into_iter().chain(&self.zeros).map(|part| &part.memory)
    }

    /// Bytes of all its parts.
    pub fn bytes(&self) -> usize {
        [&self.codes, &self.scales].into_iter().chain(&self.zeros).chain(&self.outer).map(Buffer::len).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Codes of every number, with every type of scales and zeros that recipes give them. What is of few bits is taken with one
    /// type of x each: sources are compiled for all of them.
    pub(in crate::native) fn every_form() -> Vec<PackedForm> {
        let of_kind = |at: usize, kind: Dtype| {
            let float = Element::Float(kind);
            let group = |number, group, zero| WeightCodes { number, group: Some(group), scale: float, zero };
            let uint = |bits, size| group(Element::Unsigned(bits), size, CodeZero::InSteps(Element::Unsigned(bits)));
            let mut few: Vec<_> = (1..=8).map(|bits| uint(bits, 64)).collect();
            few.extend([uint(8, 20), uint(4, 8), uint(6, 16), uint(2, 48), uint(1, 32)]);
            few.extend([1, 3, 8].map(|bits| group(Element::Unsigned(bits), 64, CodeZero::InUnits(float))));
            few.push(group(Element::Signed(4), 128, CodeZero::Nothing));
            let mut codes = vec![WeightCodes::int8(kind), WeightCodes::e4m3(), WeightCodes::int4(128, Dtype::Bf16)];
            codes.extend([32, 128].map(|size| WeightCodes::int4(size, kind)));
            codes.push(WeightCodes { number: Element::E3m2, ..WeightCodes::int8(kind) });
            codes.push(group(Element::Unsigned(4), 64, CodeZero::InSteps(float)));
            codes.extend(few.into_iter().skip(at).step_by(Dtype::ALL.len()));
            let mut forms: Vec<_> = codes.into_iter().map(|codes| PackedForm::weight_only(kind, codes)).collect();
            forms.extend(microscaling(kind));
            forms
        };
        Dtype::ALL.into_iter().enumerate().flat_map(|(at, kind)| of_kind(at, kind)).collect()
    }

    /// Where the input is rounded too.
    pub(in crate::native) fn microscaling(kind: Dtype) -> [PackedForm; 3] {
        let mx = |number| PackedForm { kind, codes: WeightCodes::mx(number), input: InputNumbers::Mx(number) };
        let nvfp4 = PackedForm { kind, codes: WeightCodes::nvfp4(), input: InputNumbers::Nvfp4 };
        [mx(Element::E4m3), mx(Element::E2m1), nvfp4]
    }

    #[test]
    fn rows_are_filled_up_to_whole_groups_and_whole_pieces() {
        let shape = LinearShape { m: 1, k: 129, n: 3 };
        let reads = |codes| PackedForm::weight_only(Dtype::Bf16, codes).reads(shape);
        assert_eq!(reads(WeightCodes::int8(Dtype::Bf16)), [("codes", 3 * 160), ("scales", 6)]);
        let int4 = reads(WeightCodes::int4(128, Dtype::F32));
        assert_eq!(int4, [("codes", 3 * 128), ("scales", 24), ("zeros", 24)]);
        let three = WeightCodes { number: Element::Unsigned(3), ..WeightCodes::int4(32, Dtype::Bf16) };
        let three = WeightCodes { zero: CodeZero::InSteps(Element::Unsigned(3)), ..three };
        // Fifteen zeros of three bits are two words.
        assert_eq!(reads(three), [("codes", 3 * 160 * 3 / 8), ("scales", 30), ("zeros", 8)]);
        for form in every_form() {
            for k in [1, 17, 127, 129, 1000, 4096] {
                let (_, bytes) = form.reads(LinearShape { m: 1, k, n: 1 })[0];
                let piece = 4 * form.codes.piece_words();
                assert!(bytes.is_multiple_of(piece), "{form:?}");
                assert!(bytes >= k.div_ceil(form.codes.piece_codes()) * piece, "{form:?}");
            }
        }
    }

    #[test]
    fn codes_that_kernels_do_not_know_and_groups_of_parts_of_words_are_refused() {
        let check = |codes| PackedForm::weight_only(Dtype::Bf16, codes).checked();
        for group in [0, 1, 31, 44] {
            assert_eq!(check(WeightCodes::int4(group, Dtype::Bf16)), Err(NativeError::InvalidGroup { group, bits: 4 }));
        }
        let int4 = WeightCodes::int4(32, Dtype::Bf16);
        let unknown = [
            WeightCodes { group: None, ..int4 },
            WeightCodes { zero: CodeZero::Nothing, ..int4 },
            WeightCodes { number: Element::E5m2, ..WeightCodes::e4m3() },
            WeightCodes { scale: Element::E2m1, ..int4 },
        ];
        for codes in unknown {
            assert!(matches!(check(codes), Err(NativeError::WeightCodes { .. })), "{codes:?}");
        }
        assert!(every_form().into_iter().all(|form| form.checked().is_ok()));
    }
}
