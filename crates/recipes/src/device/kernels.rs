//! Kernels around the arithmetic in [`crate::scalar`]: finding groups, reducing them, packing codes.
//!
//! Data flow: a cube for a row, or a unit for a block, looks through its numbers for the scale, and again for the codes, which it
//! packs into whole words. Traffic: the numbers twice, the second time mostly from a cache, and codes and scales once; what is
//! read back, the codes once and the numbers once. Roofline: the memory's for rows; a unit for a block reads scattered words.

use crate::scalar::hqq::{self, ITERATIONS};
use crate::scalar::minifloat::{E2m1, E3m2, E4m3, E5m2, Minifloat};
use crate::scalar::qqq;
use crate::scalar::rounding::{Steps, apart, either, greater, lesser};
use crate::scalar::rules::{Rule, Terms, power_of_two};
use crate::{Dtype, Element};
use cubecl::prelude::*;

/// Units that look at one group together, where it is a whole row.
pub const UNITS_PER_ROW: usize = 128;

/// The least and greatest number that some units of a cube have seen, and whether all were finite.
#[derive(CubeType)]
struct Extremes {
    low: f32,
    high: f32,
    finite: u32,
}

/// Looks at numbers `start..end` of a row, every `units`-th from this unit's, and shares what the units found.
#[cube]
fn extremes<F: Float>(
    input: &Tensor<F>,
    row: usize,
    start: usize,
    end: usize,
    lane: usize,
    #[comptime] units: usize,
) -> Extremes {
    let mut low = f32::max_value();
    let mut high = f32::min_value();
    let mut finite = 1u32.runtime();
    let mut at = start + lane;
    while at < end {
        let x = f32::cast_from(input[row * input.stride(0) + at]);
        low = lesser(low, x);
        high = greater(high, x);
        finite = either((x.to_bits() & 0x7FFF_FFFF) < 0x7F80_0000, finite, 0u32);
        at += units;
    }
    if comptime!(units > 1) {
        let mut lows = SharedMemory::<f32>::new(units);
        let mut highs = SharedMemory::<f32>::new(units);
        let mut finites = SharedMemory::<u32>::new(units);
        lows[lane] = low;
        highs[lane] = high;
        finites[lane] = finite;
        sync_cube();
        let mut width = comptime!(units / 2).runtime();
        while width > 0 {
            if lane < width {
                lows[lane] = lesser(lows[lane], lows[lane + width]);
                highs[lane] = greater(highs[lane], highs[lane + width]);
                finites[lane] = finites[lane] * finites[lane + width];
            }
            sync_cube();
            width /= 2;
        }
        low = lows[0];
        high = highs[0];
        finite = finites[0];
    }
    Extremes { low, high, finite }
}

/// The largest magnitude of each row; NaN where a number is not finite.
#[cube(launch_unchecked)]
pub fn largest_of_rows<F: Float>(
    input: &Tensor<F>,
    largest: &mut Array<f32>,
    rows: usize,
    cols: usize,
    #[define(F)] _dtype: StorageType,
) {
    if CUBE_POS < rows {
        let found = extremes::<F>(input, CUBE_POS, 0, cols, UNIT_POS as usize, UNITS_PER_ROW);
        if UNIT_POS == 0 {
            let amax = greater(greater(-found.low, found.high), 0.0);
            largest[CUBE_POS] = f32::from_bits(either(found.finite == 1, amax.to_bits(), 0x7FC0_0000u32));
        }
    }
}

/// The largest of the rows' largest magnitudes, by one cube.
#[cube(launch_unchecked)]
pub fn largest_of_all(of_rows: &Array<f32>, largest: &mut Array<f32>, rows: usize) {
    let lane = UNIT_POS as usize;
    let mut shared = SharedMemory::<u32>::new(UNITS_PER_ROW);
    // Magnitudes are ordered as their bits are, and NaN comes last.
    let mut most = 0u32.runtime();
    let mut row = lane;
    while row < rows {
        let bits = of_rows[row].to_bits();
        most = either(most < bits, bits, most);
        row += UNITS_PER_ROW;
    }
    shared[lane] = most;
    sync_cube();
    if lane == 0 {
        for other in 0..UNITS_PER_ROW {
            most = either(most < shared[other], shared[other], most);
        }
        largest[0] = f32::from_bits(most);
    }
}

/// Packs the codes of `start..start + count` of a row that `code` gives, from this unit's word on.
#[cube]
fn pack_word(codes: &mut Array<u32>, word: usize, values: &Array<u32>, #[comptime] bits: u32, #[comptime] per: usize) {
    let words = comptime!(per * bits as usize / 32);
    let mut held = Array::<u32>::new(words);
    #[unroll]
    for i in 0..words {
        held[i] = 0u32;
    }
    #[unroll]
    for i in 0..per {
        let (at, shift) = comptime!((i * bits as usize / 32, (i as u32 * bits) % 32));
        held[at] |= values[i] << shift;
        if comptime!(shift + bits > 32) {
            held[at + 1] |= values[i] >> comptime!(32 - shift);
        }
    }
    #[unroll]
    for i in 0..words {
        codes[word + i] = held[i];
    }
}

/// Quantizes groups, each by `units` units: a whole cube for a row, one unit for a block.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn quantize_groups<F: Float, R: Rule>(
    input: &Tensor<F>,
    largest: &Array<f32>,
    codes: &mut Array<u32>,
    scales: &mut Array<u32>,
    zeros: &mut Array<u32>,
    terms: Terms,
    rows: usize,
    cols: usize,
    group: usize,
    words_per_row: usize,
    #[comptime] bits: u32,
    #[comptime] units: usize,
    #[comptime] blocks: bool,
    #[comptime] whole: bool,
    #[comptime] looks_at_all: bool,
    #[define(F)] _dtype: StorageType,
) {
    let groups = cols.div_ceil(group);
    let (index, lane) =
        if comptime!(units > 1) { (CUBE_POS, UNIT_POS as usize) } else { (ABSOLUTE_POS, 0usize.runtime()) };
    if index < rows * groups {
        let row = index / groups;
        let start = (index % groups) * group;
        let end = if start + group < cols { start + group } else { cols };
        let found = extremes::<F>(input, row, start, end, lane, units);
        let mut low = found.low;
        let mut high = found.high;
        let mut amax = 0.0f32.runtime();
        let mut finite = found.finite;
        if comptime!(looks_at_all) {
            amax = largest[0];
            finite = either((amax.to_bits() & 0x7FFF_FFFF) < 0x7F80_0000, finite, 0u32);
        }
        if comptime!(blocks) {
            // The zeros that fill the last group up belong to it.
            if start + group > cols {
                low = lesser(low, 0.0);
                high = greater(high, 0.0);
            }
        }
        if comptime!(whole) {
            low = -amax;
            high = amax;
        }
        let scale = R::scale(low, high, amax, terms);
        let zero = R::zero(low, scale, terms);
        // Numbers so far apart that their distance is infinite share no scale.
        finite = either((scale.to_bits() & 0x7FFF_FFFF) < 0x7F80_0000, finite, 0u32);
        if lane == 0 {
            if comptime!(whole) {
                if index == 0 {
                    scales[0] = either(finite == 1, scale.to_bits(), 0x7FC0_0000u32);
                }
            } else {
                scales[index] = either(finite == 1, scale.to_bits(), 0x7FC0_0000u32);
                zeros[index] = either(finite == 1, zero.to_bits(), 0u32);
            }
        }
        // Numbers that fill whole words.
        let per = comptime!(if 32 % bits == 0 { (32 / bits) as usize } else { 32 });
        let words = comptime!(per * bits as usize / 32);
        let last = if comptime!(blocks) { start + group } else { words_per_row * 32 / comptime!(bits as usize) };
        let mut at = start + lane * per;
        while at < last {
            let mut values = Array::<u32>::new(per);
            #[unroll]
            for i in 0..per {
                let mut x = 0.0f32.runtime();
                let mut counts = finite == 1;
                if at + i < cols {
                    x = f32::cast_from(input[row * input.stride(0) + at + i]);
                } else if comptime!(!blocks) {
                    counts = false;
                }
                values[i] = either(counts, R::code(x, scale, zero, amax, terms), 0u32);
            }
            pack_word(codes, row * words_per_row + at / per * words, &values, bits, per);
            at += per * units;
        }
    }
}

/// A code out of words; it may stand in two of them.
#[cube]
pub fn unpack(words: &Array<u32>, first: usize, index: usize, #[comptime] bits: u32) -> u32 {
    let at = index * comptime!(bits as usize);
    let (word, shift) = (first + at / 32, (at % 32) as u32);
    let mut code = words[word] >> shift;
    if comptime!(32 % bits != 0) {
        if shift + bits > 32 {
            code |= words[word + 1] << (32 - shift);
        }
    }
    code & comptime!(u32::MAX >> (32 - bits))
}

/// What a code stands for.
#[cube]
pub fn decode(code: u32, #[comptime] element: Element) -> f32 {
    match comptime!(element) {
        Element::Signed(bits) => {
            let shift = comptime!(32 - u32::from(bits));
            ((code << shift) as i32 >> comptime!(shift as i32)) as f32
        }
        Element::Unsigned(_) => code as f32,
        Element::E4m3 => E4m3::decode(code),
        Element::E5m2 => E5m2::decode(code),
        Element::E3m2 => E3m2::decode(code),
        Element::E2m1 => E2m1::decode(code),
        Element::E8m0 => f32::from_bits(either(code == 255, 0x7FC0_0000u32, power_of_two(code).to_bits())),
        Element::Float(Dtype::F32) => f32::from_bits(code),
        Element::Float(Dtype::Bf16) => f32::from_bits(code << 16),
        Element::Float(Dtype::F16) => half(code),
    }
}

/// The number that the bits of an IEEE half stand for.
#[cube]
fn half(code: u32) -> f32 {
    let magnitude = code & 0x7FFF;
    let finite = crate::scalar::minifloat::decode_magnitude(magnitude, 10u32, 15u32, 0.000_061_035_156).to_bits();
    let special = 0x7F80_0000u32 | ((magnitude & 0x3FF) << 13);
    f32::from_bits(either(magnitude < 0x7C00, finite, special) | ((code & 0x8000) << 16))
}

/// The number at a column of a row: its code, or zero if only two of every four are stored and it is not one of them.
#[cube]
fn number_at(
    codes: &Array<u32>,
    kept: &Array<u32>,
    row: usize,
    col: usize,
    words_per_row: usize,
    kept_words_per_row: usize,
    #[comptime] element: Element,
    #[comptime] two_of_four: bool,
) -> f32 {
    let bits = comptime!(element.bits());
    let mut number = 0.0f32.runtime();
    if comptime!(two_of_four) {
        let positions = unpack(kept, row * kept_words_per_row, col / 4, 4u32);
        let (first, second, own) = (positions & 3, positions >> 2, (col % 4) as u32);
        if own == first || own == second {
            let place = col / 4 * 2 + (own != first) as usize;
            number = decode(unpack(codes, row * words_per_row, place, bits), element);
        }
    } else {
        number = decode(unpack(codes, row * words_per_row, col, bits), element);
    }
    number
}

/// How the zeros of a stored tensor are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ZeroKind {
    None,
    InSteps(Element),
    InUnits(Element),
    RoundedToIntegers,
}

impl ZeroKind {
    /// Bits of a zero, where numbers need one.
    pub fn bits(self) -> u32 {
        match self {
            Self::InSteps(element) | Self::InUnits(element) => element.bits(),
            Self::None | Self::RoundedToIntegers => 0,
        }
    }
}

/// Reads numbers, or codes alone, one by each unit.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn read_numbers<F: Float>(
    codes: &Array<u32>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    kept: &Array<u32>,
    output: &mut Array<F>,
    first_row: usize,
    rows: usize,
    cols: usize,
    group: usize,
    words_per_row: usize,
    kept_words_per_row: usize,
    blank: u32,
    #[comptime] element: Element,
    #[comptime] two_of_four: bool,
    #[comptime] scale: Option<Element>,
    #[comptime] whole: bool,
    #[comptime] zero: ZeroKind,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS < rows * cols {
        let (row, col) = (first_row + ABSOLUTE_POS / cols, ABSOLUTE_POS % cols);
        let bits = comptime!(element.bits());
        let mut number = number_at(codes, kept, row, col, words_per_row, kept_words_per_row, element, two_of_four);
        if comptime!(scale.is_some()) {
            let scale = comptime!(scale.expect("it was just seen to be some"));
            let groups = cols.div_ceil(group);
            let index = if comptime!(whole) { 0usize.runtime() } else { row * groups + col / group };
            let factor = decode(unpack(scales, 0, index, comptime!(scale.bits())), scale);
            number = match comptime!(zero) {
                ZeroKind::None => number * factor,
                ZeroKind::RoundedToIntegers => qqq::byte(apart(number * factor, blank)) as f32,
                ZeroKind::InSteps(element) => {
                    (number - decode(unpack(zeros, 0, index, comptime!(element.bits())), element)) * factor
                }
                ZeroKind::InUnits(element) => {
                    let middle = comptime!((1u32 << (bits - 1)) as f32);
                    let shift = decode(unpack(zeros, 0, index, comptime!(element.bits())), element);
                    apart((number - middle) * factor, blank) + shift
                }
            };
        }
        output[ABSOLUTE_POS] = F::cast_from(number);
    }
}

/// Reads stored numbers of one type, such as scales, from the `first` on.
#[cube(launch_unchecked)]
pub fn read_elements<F: Float>(
    words: &Array<u32>,
    output: &mut Array<F>,
    first: usize,
    count: usize,
    #[comptime] element: Element,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS < count {
        let code = unpack(words, 0, first + ABSOLUTE_POS, comptime!(element.bits()));
        output[ABSOLUTE_POS] = F::cast_from(decode(code, element));
    }
}

/// Takes groups through all iterations of half-quadratic quantization, one by each unit: its stretch, its zero before the
/// first iteration and after each, and its error in each.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn hqq_courses<F: Float>(
    input: &Tensor<F>,
    inverse_betas: &Array<f32>,
    stretches: &mut Array<f32>,
    zeros: &mut Array<f32>,
    errors: &mut Array<f32>,
    terms: Terms,
    rows: usize,
    cols: usize,
    group: usize,
    #[comptime] lanes: usize,
    #[define(F)] _dtype: StorageType,
) {
    let groups = cols.div_ceil(group);
    if ABSOLUTE_POS < rows * groups {
        let (row, start) = (ABSOLUTE_POS / groups, (ABSOLUTE_POS % groups) * group);
        let end = if start + group < cols { start + group } else { cols };
        let found = extremes::<F>(input, row, start, end, 0usize, 1usize);
        let mut low = found.low;
        let mut high = found.high;
        if start + group > cols {
            low = lesser(low, 0.0);
            high = greater(high, 0.0);
        }
        let stretch = hqq::stretch(low, high, terms.most);
        let mut zero = hqq::first_zero(low, stretch, terms.most, terms.blank);
        let finite = found.finite == 1 && stretch > 0.0;
        stretches[ABSOLUTE_POS] = f32::from_bits(either(finite, stretch.to_bits(), 0x7FC0_0000u32));
        zeros[ABSOLUTE_POS * comptime!(ITERATIONS + 1)] = zero;
        for iteration in 0..ITERATIONS {
            let mut wished = Array::<f32>::new(lanes);
            let mut missed = Array::<f32>::new(lanes);
            #[unroll]
            for lane in 0..lanes {
                wished[lane] = 0.0f32.runtime();
                missed[lane] = 0.0f32.runtime();
            }
            let mut at = 0usize.runtime();
            while at < group {
                #[unroll]
                for lane in 0..lanes {
                    let col = start + at + lane;
                    let mut x = 0.0f32.runtime();
                    if col < cols {
                        x = f32::cast_from(input[row * input.stride(0) + col]);
                    }
                    let code = hqq::code(x, stretch, zero, terms.most, terms.blank);
                    let error = hqq::error(x, code, stretch, zero);
                    missed[lane] += f32::from_bits(error.to_bits() & 0x7FFF_FFFF);
                    let outlier = hqq::outlier(error, inverse_betas[iteration], terms.blank);
                    wished[lane] += hqq::wished_zero(x, code, outlier, stretch, terms.blank);
                }
                at += lanes;
            }
            let mut wish = 0.0f32.runtime();
            let mut miss = 0.0f32.runtime();
            #[unroll]
            for lane in 0..lanes {
                wish += wished[lane];
                miss += missed[lane];
            }
            errors[ABSOLUTE_POS * ITERATIONS + iteration] = miss;
            zero = wish / group as f32;
            zeros[ABSOLUTE_POS * comptime!(ITERATIONS + 1) + iteration + 1] = zero;
        }
    }
}

/// Writes the codes of groups under the zeros after `kept` iterations, one group by each unit.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn hqq_codes<F: Float>(
    input: &Tensor<F>,
    stretches: &Array<f32>,
    courses: &Array<f32>,
    codes: &mut Array<u32>,
    terms: Terms,
    rows: usize,
    cols: usize,
    group: usize,
    words_per_row: usize,
    kept: usize,
    #[comptime] bits: u32,
    #[define(F)] _dtype: StorageType,
) {
    let groups = cols.div_ceil(group);
    if ABSOLUTE_POS < rows * groups {
        let (row, start) = (ABSOLUTE_POS / groups, (ABSOLUTE_POS % groups) * group);
        let stretch = stretches[ABSOLUTE_POS];
        let finite = (stretch.to_bits() & 0x7FFF_FFFF) < 0x7F80_0000;
        let zero = courses[ABSOLUTE_POS * comptime!(ITERATIONS + 1) + kept];
        let per = comptime!(if 32 % bits == 0 { (32 / bits) as usize } else { 32 });
        let words = comptime!(per * bits as usize / 32);
        let mut at = start;
        while at < start + group {
            let mut values = Array::<u32>::new(per);
            #[unroll]
            for i in 0..per {
                let mut x = 0.0f32.runtime();
                if at + i < cols {
                    x = f32::cast_from(input[row * input.stride(0) + at + i]);
                }
                let code = hqq::code(x, stretch, zero, terms.most, terms.blank) as u32;
                values[i] = either(finite, code, 0u32);
            }
            pack_word(codes, row * words_per_row + at / per * words, &values, bits, per);
            at += per;
        }
    }
}

/// Quantizes rows by QQQ, one by each unit.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn qqq_rows<F: Float, S: Steps>(
    input: &Tensor<F>,
    codes: &mut Array<u32>,
    scales: &mut Array<u32>,
    outer: &mut Array<u32>,
    rows: usize,
    cols: usize,
    group: usize,
    words_per_row: usize,
    least: i32,
    blank: u32,
    #[comptime] one: bool,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS < rows {
        let row = ABSOLUTE_POS;
        let groups = cols.div_ceil(group);
        let whole = extremes::<F>(input, row, 0usize, cols, 0usize, 1usize);
        let mut largest = 0.0f32.runtime();
        for index in 0..groups {
            let start = index * group;
            let end = if start + group < cols { start + group } else { cols };
            let found = extremes::<F>(input, row, start, end, 0usize, 1usize);
            let amax = greater(greater(-found.low, found.high), 0.0);
            let scale = if comptime!(one) { S::round(amax / 7.0) } else { qqq::group_scale::<S>(amax) };
            scales[row * groups + index] = scale.to_bits();
            let mut at = start;
            while at < start + group {
                let mut word = 0u32.runtime();
                #[unroll]
                for i in 0..8usize {
                    if at + i < cols {
                        let code = qqq::code::<S>(f32::cast_from(input[row * input.stride(0) + at + i]), scale, least);
                        let number = S::round(code as f32 * scale);
                        largest = greater(largest, f32::from_bits(number.to_bits() & 0x7FFF_FFFF));
                        word |= (code as u32 & 0xF) << comptime!(i as u32 * 4);
                    }
                }
                codes[row * words_per_row + at / 8] = either(whole.finite == 1, word, 0u32);
                at += 8usize;
            }
        }
        let mut own = S::round(apart(largest, blank) / 127.0);
        if comptime!(one) {
            own = S::round(f32::from_bits(scales[row]) / 16.0);
        }
        for index in 0..groups {
            let at = row * groups + index;
            let mut related = qqq::related::<S>(f32::from_bits(scales[at]), own);
            if comptime!(one) {
                // One group is one scale: the codes stand in the upper halves of 8-bit integers.
                related = 16.0f32.runtime();
            }
            scales[at] = either(whole.finite == 1, related.to_bits(), 0x7FC0_0000u32);
        }
        outer[row] = either(whole.finite == 1, own.to_bits(), 0x7FC0_0000u32);
    }
}

/// The scale of a tensor in NVFP4 from its largest magnitude.
#[cube(launch_unchecked)]
pub fn nvfp4_outer(largest: &Array<f32>, outer: &mut Array<u32>) {
    if ABSOLUTE_POS == 0 {
        outer[0] = crate::scalar::rules::nvfp4_tensor_scale(largest[0]).to_bits();
    }
}
