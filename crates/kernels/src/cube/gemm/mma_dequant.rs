//! Dequantization of packed weights in registers to pairs of the input dtype, as fragments of matrix instructions hold
//! them. A pair consists of two values that are cheap to extract together. Input values are paired in the same order.

use super::mma_config::MmaGemmConfig;
use super::spec::scale_index;
use crate::cube::decode::{DequantMode, decode, decode_fast, decode_packed, unpack_value};
use crate::{Dtype, Element};
use cubecl::prelude::*;

impl MmaGemmConfig {
    /// True if values are converted to the input dtype in pairs, exactly.
    pub(super) fn converts_exact_pairs(&self) -> bool {
        self.weight.scales_in_epilogue() && matches!(self.weight.element, Element::Signed(8) | Element::E4m3)
    }

    /// True if 4-bit values are dequantized in pairs in the input dtype, with scale and zero point in this dtype. The
    /// compiler may round the product before the addition.
    fn converts_scaled_pairs(&self) -> bool {
        let own = Element::Float(self.dtype);
        self.pair_distance() == 4
            && self.weight.scale == own
            && self.weight.zero == DequantMode::ZeroAfterScale(own)
            && !self.weight.scales_in_epilogue()
    }

    /// Distance of the two values of a pair: the one that is cheapest to move into both halves of a word.
    fn pair_distance(&self) -> usize {
        match self.weight.element {
            Element::Unsigned(4) => 4,
            _ if self.converts_exact_pairs() => 2,
            _ => 1,
        }
    }

    /// Bit pattern of the power of two into whose low mantissa bits values are inserted. Passed at run time, because an
    /// instruction that masks and ORs accepts a single immediate.
    pub(super) fn magic_bits(&self) -> u32 {
        match (self.converts_exact_pairs() || self.converts_scaled_pairs(), self.dtype) {
            (true, Dtype::F16) => 0x6400_6400,
            (true, _) => 0x4300_4300,
            (false, _) => 0x4300_0000,
        }
    }

    /// Index of the first value of a pair.
    fn pair_start(&self, pair: usize) -> usize {
        let apart = self.pair_distance();
        pair / apart * 2 * apart + pair % apart
    }
}

/// Dequantizes a piece of a row to pairs.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn dequant_piece<F: Float>(
    loaded: &Array<u32>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    weight_pairs: &mut Array<Vector<F, Const<2>>>,
    row: usize,
    piece: usize,
    power: u32,
    #[comptime] chunk: usize,
    #[comptime] row_index: usize,
    #[comptime] form: MmaGemmConfig,
) {
    let (words, pairs) = comptime!((form.words_per_piece(), form.pairs_per_piece()));
    let first_word = comptime!((chunk * 2 * form.n_tiles + row_index) * words);
    #[unroll]
    for part in 0..comptime!(form.piece_len() / form.values_per_scale()) {
        let mut scale = 1.0f32.runtime();
        let mut offset = 0.0f32.runtime();
        if comptime!(!form.weight.scales_in_epilogue()) {
            let group = scale_index(row, piece, part, comptime!(form.piece_len()), form.weight);
            scale = decode_packed(scales, group, form.weight.scale);
            let mut zero = 0u32.runtime();
            if comptime!(form.weight.zero.bits() > 0) {
                zero = unpack_value(zeros, 0, group, comptime!(form.weight.zero.bits()));
            }
            offset = dequant_offset(zero, scale, form);
        }
        #[unroll]
        for local_pair in 0..comptime!(form.values_per_scale() / 2) {
            let pair = comptime!(part * form.values_per_scale() / 2 + local_pair);
            weight_pairs[comptime!(row_index * pairs + pair)] =
                dequant_pair::<F>(loaded, scale, offset, power, first_word, pair, form);
        }
    }
}

/// Offset added to scaled values.
#[cube]
pub(super) fn dequant_offset(zero: u32, scale: f32, #[comptime] form: MmaGemmConfig) -> f32 {
    let mut offset = match comptime!(form.weight.zero) {
        DequantMode::ZeroBeforeScale(element) => -decode(zero, element) * scale,
        DequantMode::ZeroAfterScale(element) => {
            let midpoint = comptime!(if form.converts_scaled_pairs() {
                0.0
            } else {
                (1u32 << (form.weight.element.bits() - 1)) as f32
            });
            decode(zero, element) - midpoint * scale
        }
        _ => 0.0f32.runtime(),
    };
    if comptime!(form.pair_distance() == 4 && !form.converts_scaled_pairs()) {
        offset -= 128.0 * scale;
    }
    offset
}

/// Dequantizes a pair of values.
#[cube]
pub(super) fn dequant_pair<F: Float>(
    loaded: &Array<u32>,
    scale: f32,
    offset: f32,
    power: u32,
    #[comptime] first_word: usize,
    #[comptime] pair: usize,
    #[comptime] form: MmaGemmConfig,
) -> Vector<F, Const<2>> {
    if comptime!(form.converts_exact_pairs()) {
        convert_pair::<F>(loaded[comptime!(first_word + pair / 2)], power, comptime!(pair % 2), form)
    } else if comptime!(form.converts_scaled_pairs()) {
        // Inserted into the low bits of a power of two with spacing 1; subtracting that and the midpoint is exact.
        let inserted = (loaded[comptime!(first_word + pair / 4)] >> comptime!(4 * (pair % 4) as u32)) & 0x000F_000F;
        let bias = comptime!(if form.dtype == Dtype::F16 { 1032.0 } else { 136.0 });
        let code = pair_from_bits::<F>(inserted | power) - Vector::new(F::new(bias));
        code * Vector::new(F::cast_from(scale)) + Vector::new(F::cast_from(offset))
    } else {
        dequant_pair_f32::<F>(loaded, scale, offset, power, first_word, pair, form)
    }
}

/// Converts the values `at` and `at + 2` of a word, without scales. An integer is inserted into the low bits of a power
/// of two with spacing 1, which is then subtracted: 2^7 in bf16, 2^10 in f16.
#[cube]
fn convert_pair<F: Float>(
    word: u32,
    power: u32,
    #[comptime] at: usize,
    #[comptime] form: MmaGemmConfig,
) -> Vector<F, Const<2>> {
    let is_bf16 = comptime!(form.dtype == Dtype::Bf16);
    if comptime!(form.weight.element == Element::E4m3) {
        // Moved to the upper bytes, then multiplied to correct the exponent bias for the wider dtype.
        let upper = if comptime!(at == 0) { word << 8 } else { word };
        let sign = upper & 0x8000_8000u32;
        if comptime!(is_bf16) {
            pair_from_bits::<F>(sign | ((upper >> 4) & 0x07F0_07F0)) * Vector::new(F::new(comptime!(2f32.powi(120))))
        } else {
            pair_from_bits::<F>(sign | ((upper >> 1) & 0x3F80_3F80)) * Vector::new(F::new(256.0))
        }
    } else {
        let lower = if comptime!(at == 0) { word } else { word >> 8 };
        if comptime!(is_bf16) {
            // Only seven bits fit: the sign bit selects whether 128 or 256 is subtracted.
            pair_from_bits::<F>((lower & 0x007F_007F) | power) - pair_from_bits::<F>((lower & 0x0080_0080) | power)
        } else {
            pair_from_bits::<F>(((lower ^ 0x0080_0080) & 0x00FF_00FF) | power) - Vector::new(F::new(1152.0))
        }
    }
}

/// Dequantizes a pair of values in f32 and rounds once.
#[cube]
fn dequant_pair_f32<F: Float>(
    loaded: &Array<u32>,
    scale: f32,
    offset: f32,
    power: u32,
    #[comptime] first_word: usize,
    #[comptime] pair: usize,
    #[comptime] form: MmaGemmConfig,
) -> Vector<F, Const<2>> {
    let mut values = Vector::<f32, Const<2>>::empty();
    #[unroll]
    for i in 0..2usize {
        let code = comptime!(form.pair_start(pair) + i * form.pair_distance());
        let bits = comptime!(form.weight.element.bits());
        let (word, at) = comptime!((first_word + code * bits as usize / 32, (code * bits as usize % 32) as u32));
        let decoded = if comptime!(form.pair_distance() == 4) {
            // Inserted into the low bits of 2^7 as a bf16, which saves a shift and a mask.
            let shifted = if comptime!(at < 16) {
                loaded[word] << comptime!(16 - at)
            } else {
                loaded[word] >> comptime!(at - 16)
            };
            f32::from_bits((shifted & 0x000F_0000) | power)
        } else {
            let mut extracted = loaded[word] >> at;
            if comptime!(at + bits > 32) {
                extracted |= loaded[comptime!(word + 1)] << comptime!(32 - at);
            }
            decode_fast(extracted & comptime!(u32::MAX >> (32 - bits)), form.weight.element)
        };
        values[i] = if comptime!(form.weight.scales_in_epilogue()) {
            if comptime!(form.pair_distance() == 4) { decoded - 128.0 } else { decoded }
        } else {
            fma(decoded, scale, offset)
        };
    }
    Vector::cast_from(values)
}

/// Input pair in the order of a pair of weight values.
#[cube]
pub(super) fn input_pair<F: Float>(
    words: &Array<u32>,
    #[comptime] pair: usize,
    #[comptime] form: MmaGemmConfig,
) -> Vector<F, Const<2>> {
    if comptime!(form.pair_distance() == 1) {
        pair_from_bits::<F>(words[pair])
    } else {
        let first = comptime!(form.pair_start(pair));
        let (near, far) = (words[comptime!(first / 2)], words[comptime!((first + form.pair_distance()) / 2)]);
        if comptime!(first.is_multiple_of(2)) {
            pair_from_bits::<F>((near & 0xFFFF) | (far << 16))
        } else {
            pair_from_bits::<F>((near >> 16) | (far & 0xFFFF_0000u32))
        }
    }
}

/// Reinterprets a word as a pair of values.
#[cube]
pub(super) fn pair_from_bits<F: Float>(bits: u32) -> Vector<F, Const<2>> {
    Vector::<F, Const<2>>::reinterpret(bits)
}
