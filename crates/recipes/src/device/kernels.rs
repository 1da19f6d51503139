//! Quantization kernels with the arithmetic of [`crate::scalar`]: reduction of groups, packing and dequantization.
//! CubeCL's units, planes and cubes are CUDA's threads, warps and blocks.
//!
//! Data flow: a cube per row, or a unit per block, reads its values to compute the scale, and again to quantize and
//! pack them into whole words. Traffic: values twice, the second time mostly from cache, packed words and scales once;
//! for dequantization packed words and values once. Roofline: memory bandwidth for rows; per-block accesses are not
//! coalesced.

use crate::Element;
use crate::scalar::hqq::{self, ITERATIONS};
use crate::scalar::rounding::{StepRounding, max_f32, min_f32, prevent_fma, select_bits, to_f16};
use crate::scalar::rules::{QuantParams, QuantRule};
use crate::scalar::{ggml, qqq};
use calorimeter_kernels::cube::decode::{DequantMode, decode, decode_packed, unpack_value};
use cubecl::prelude::*;

/// Units that reduce a row.
pub(super) const UNITS_PER_ROW: usize = 128;

/// Minimum and maximum of a group, and a flag that is 1 if all values are finite.
#[derive(CubeType)]
struct MinMax {
    low: f32,
    high: f32,
    finite: u32,
}

/// Reduces values `start..end` of a row over `units` units; unit `lane` reads every `units`-th value.
#[cube]
fn group_min_max<F: Float>(
    input: &Tensor<F>,
    row: usize,
    start: usize,
    end: usize,
    lane: usize,
    #[comptime] units: usize,
) -> MinMax {
    let mut low = f32::max_value();
    let mut high = f32::min_value();
    let mut finite = 1u32.runtime();
    let mut at = start + lane;
    while at < end {
        let x = f32::cast_from(input[row * input.stride(0) + at]);
        low = min_f32(low, x);
        high = max_f32(high, x);
        finite = select_bits((x.to_bits() & 0x7FFF_FFFF) < 0x7F80_0000, finite, 0u32);
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
                lows[lane] = min_f32(lows[lane], lows[lane + width]);
                highs[lane] = max_f32(highs[lane], highs[lane + width]);
                finites[lane] = finites[lane] * finites[lane + width];
            }
            sync_cube();
            width /= 2;
        }
        low = lows[0];
        high = highs[0];
        finite = finites[0];
    }
    MinMax { low, high, finite }
}

/// Computes amax of each row; NaN if a value is not finite.
#[cube(launch_unchecked)]
pub(super) fn rows_amax<F: Float>(
    input: &Tensor<F>,
    row_amax: &mut Array<f32>,
    rows: usize,
    cols: usize,
    #[define(F)] _dtype: StorageType,
) {
    if CUBE_POS < rows {
        let range = group_min_max::<F>(input, CUBE_POS, 0, cols, UNIT_POS as usize, UNITS_PER_ROW);
        if UNIT_POS == 0 {
            let amax = max_f32(max_f32(-range.low, range.high), 0.0);
            row_amax[CUBE_POS] = f32::from_bits(select_bits(range.finite == 1, amax.to_bits(), 0x7FC0_0000u32));
        }
    }
}

/// Reduces the amax of all rows in one cube.
#[cube(launch_unchecked)]
pub(super) fn tensor_amax(row_amax: &Array<f32>, tensor_amax: &mut Array<f32>, rows: usize) {
    let lane = UNIT_POS as usize;
    let mut shared = SharedMemory::<u32>::new(UNITS_PER_ROW);
    // Bit patterns of magnitudes are ordered like the magnitudes, with NaN last.
    let mut amax_bits = 0u32.runtime();
    let mut row = lane;
    while row < rows {
        let bits = row_amax[row].to_bits();
        amax_bits = select_bits(amax_bits < bits, bits, amax_bits);
        row += UNITS_PER_ROW;
    }
    shared[lane] = amax_bits;
    sync_cube();
    if lane == 0 {
        for other in 0..UNITS_PER_ROW {
            amax_bits = select_bits(amax_bits < shared[other], shared[other], amax_bits);
        }
        tensor_amax[0] = f32::from_bits(amax_bits);
    }
}

/// Packs `per` values into whole words, the first of which is `word`.
#[cube]
fn pack_word(codes: &mut Array<u32>, word: usize, values: &Array<u32>, #[comptime] bits: u32, #[comptime] per: usize) {
    let words = comptime!(per * bits as usize / 32);
    let mut packed = Array::<u32>::new(words);
    #[unroll]
    for i in 0..words {
        packed[i] = 0u32;
    }
    #[unroll]
    for i in 0..per {
        let (at, shift) = comptime!((i * bits as usize / 32, (i as u32 * bits) % 32));
        packed[at] |= values[i] << shift;
        if comptime!(shift + bits > 32) {
            packed[at + 1] |= values[i] >> comptime!(32 - shift);
        }
    }
    #[unroll]
    for i in 0..words {
        codes[word + i] = packed[i];
    }
}

/// Quantizes groups with `units` units each: a cube per row or a unit per block.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn quantize_groups<F: Float, R: QuantRule>(
    input: &Tensor<F>,
    tensor_amax: &Array<f32>,
    codes: &mut Array<u32>,
    scales: &mut Array<u32>,
    zeros: &mut Array<u32>,
    params: QuantParams,
    rows: usize,
    cols: usize,
    group: usize,
    words_per_row: usize,
    #[comptime] bits: u32,
    #[comptime] units: usize,
    #[comptime] blocks: bool,
    #[comptime] per_tensor: bool,
    #[comptime] needs_amax: bool,
    #[define(F)] _dtype: StorageType,
) {
    let groups = cols.div_ceil(group);
    let (index, lane) =
        if comptime!(units > 1) { (CUBE_POS, UNIT_POS as usize) } else { (ABSOLUTE_POS, 0usize.runtime()) };
    if index < rows * groups {
        let row = index / groups;
        let start = (index % groups) * group;
        let end = if start + group < cols { start + group } else { cols };
        let range = group_min_max::<F>(input, row, start, end, lane, units);
        let mut low = range.low;
        let mut high = range.high;
        let mut amax = 0.0f32.runtime();
        let mut finite = range.finite;
        if comptime!(needs_amax) {
            amax = tensor_amax[0];
            finite = select_bits((amax.to_bits() & 0x7FFF_FFFF) < 0x7F80_0000, finite, 0u32);
        }
        if comptime!(blocks) {
            // The padding zeros are part of the last group.
            if start + group > cols {
                low = min_f32(low, 0.0);
                high = max_f32(high, 0.0);
            }
        }
        if comptime!(per_tensor) {
            low = -amax;
            high = amax;
        }
        let scale = R::scale(low, high, amax, params);
        let zero = R::zero(low, scale, params);
        // A range that overflows f32 has no scale.
        finite = select_bits((scale.to_bits() & 0x7FFF_FFFF) < 0x7F80_0000, finite, 0u32);
        if lane == 0 {
            if comptime!(per_tensor) {
                if index == 0 {
                    scales[0] = select_bits(finite == 1, scale.to_bits(), 0x7FC0_0000u32);
                }
            } else {
                scales[index] = select_bits(finite == 1, scale.to_bits(), 0x7FC0_0000u32);
                zeros[index] = select_bits(finite == 1, zero.to_bits(), 0u32);
            }
        }
        // Values that fill whole words.
        let per = comptime!(if 32 % bits == 0 { (32 / bits) as usize } else { 32 });
        let words = comptime!(per * bits as usize / 32);
        let last = if comptime!(blocks) { start + group } else { words_per_row * 32 / comptime!(bits as usize) };
        let mut at = start + lane * per;
        while at < last {
            let mut values = Array::<u32>::new(per);
            #[unroll]
            for i in 0..per {
                let mut x = 0.0f32.runtime();
                let mut is_stored = finite == 1;
                if at + i < cols {
                    x = f32::cast_from(input[row * input.stride(0) + at + i]);
                } else if comptime!(!blocks) {
                    is_stored = false;
                }
                values[i] = select_bits(is_stored, R::code(x, scale, zero, amax, params), 0u32);
            }
            pack_word(codes, row * words_per_row + at / per * words, &values, bits, per);
            at += per * units;
        }
    }
}

/// Returns the decoded value at a row and column; zero if 2:4 sparsity does not store it.
#[cube]
fn value_at(
    codes: &Array<u32>,
    sparse_positions: &Array<u32>,
    row: usize,
    col: usize,
    words_per_row: usize,
    position_words_per_row: usize,
    #[comptime] element: Element,
    #[comptime] sparse_2to4: bool,
) -> f32 {
    let bits = comptime!(element.bits());
    let mut value = 0.0f32.runtime();
    if comptime!(sparse_2to4) {
        let positions = unpack_value(sparse_positions, row * position_words_per_row, col / 4, 4u32);
        let (first, second, position) = (positions & 3, positions >> 2, (col % 4) as u32);
        if position == first || position == second {
            let index = col / 4 * 2 + (position != first) as usize;
            value = decode(unpack_value(codes, row * words_per_row, index, bits), element);
        }
    } else {
        value = decode(unpack_value(codes, row * words_per_row, col, bits), element);
    }
    value
}

/// Dequantizes, or only decodes, one value per unit.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn dequantize<F: Float>(
    codes: &Array<u32>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    sparse_positions: &Array<u32>,
    output: &mut Array<F>,
    first_row: usize,
    rows: usize,
    cols: usize,
    group: usize,
    words_per_row: usize,
    position_words_per_row: usize,
    opaque_zero: u32,
    #[comptime] element: Element,
    #[comptime] sparse_2to4: bool,
    #[comptime] scale: Option<Element>,
    #[comptime] per_tensor: bool,
    #[comptime] zero: DequantMode,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS < rows * cols {
        let (row, col) = (first_row + ABSOLUTE_POS / cols, ABSOLUTE_POS % cols);
        let bits = comptime!(element.bits());
        let mut value =
            value_at(codes, sparse_positions, row, col, words_per_row, position_words_per_row, element, sparse_2to4);
        if comptime!(scale.is_some()) {
            let scale = comptime!(scale.expect("scale.is_some() was checked"));
            let groups = cols.div_ceil(group);
            let index = if comptime!(per_tensor) { 0usize.runtime() } else { row * groups + col / group };
            let factor = decode_packed(scales, index, scale);
            value = match comptime!(zero) {
                DequantMode::ScaleOnly => value * factor,
                DequantMode::RoundedToInt8 => qqq::to_int8(prevent_fma(value * factor, opaque_zero)) as f32,
                DequantMode::ZeroBeforeScale(element) => (value - decode_packed(zeros, index, element)) * factor,
                DequantMode::ZeroAfterScale(element) => {
                    let middle = comptime!((1u32 << (bits - 1)) as f32);
                    let zero_point = decode_packed(zeros, index, element);
                    prevent_fma((value - middle) * factor, opaque_zero) + zero_point
                }
            };
        }
        output[ABSOLUTE_POS] = F::cast_from(value);
    }
}

/// Decodes consecutive packed elements, such as scales, from index `first` on.
#[cube(launch_unchecked)]
pub(super) fn read_elements<F: Float>(
    words: &Array<u32>,
    output: &mut Array<F>,
    first: usize,
    count: usize,
    #[comptime] element: Element,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS < count {
        output[ABSOLUTE_POS] = F::cast_from(decode_packed(words, first + ABSOLUTE_POS, element));
    }
}

/// Runs all iterations of half-quadratic quantization, one group per unit. Writes the inverse scale of the group, its
/// zero point before the first iteration and after each, and the error of each iteration.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn hqq_iterations<F: Float>(
    input: &Tensor<F>,
    inverse_betas: &Array<f32>,
    inverse_scales: &mut Array<f32>,
    zeros: &mut Array<f32>,
    errors: &mut Array<f32>,
    params: QuantParams,
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
        let range = group_min_max::<F>(input, row, start, end, 0usize, 1usize);
        let mut low = range.low;
        let mut high = range.high;
        if start + group > cols {
            low = min_f32(low, 0.0);
            high = max_f32(high, 0.0);
        }
        let inverse_scale = hqq::inverse_scale(low, high, params.max);
        let mut zero = hqq::initial_zero_point(low, inverse_scale, params.max, params.opaque_zero);
        let finite = range.finite == 1 && inverse_scale > 0.0;
        inverse_scales[ABSOLUTE_POS] = f32::from_bits(select_bits(finite, inverse_scale.to_bits(), 0x7FC0_0000u32));
        zeros[ABSOLUTE_POS * comptime!(ITERATIONS + 1)] = zero;
        for iteration in 0..ITERATIONS {
            let mut zero_sums = Array::<f32>::new(lanes);
            let mut error_sums = Array::<f32>::new(lanes);
            #[unroll]
            for lane in 0..lanes {
                zero_sums[lane] = 0.0f32.runtime();
                error_sums[lane] = 0.0f32.runtime();
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
                    let code = hqq::code(x, inverse_scale, zero, params.max, params.opaque_zero);
                    let error = hqq::error(x, code, inverse_scale, zero);
                    error_sums[lane] += f32::from_bits(error.to_bits() & 0x7FFF_FFFF);
                    let outlier = hqq::outlier(error, inverse_betas[iteration], params.opaque_zero);
                    zero_sums[lane] += hqq::target_zero_point(x, code, outlier, inverse_scale, params.opaque_zero);
                }
                at += lanes;
            }
            let mut zero_sum = 0.0f32.runtime();
            let mut error_sum = 0.0f32.runtime();
            #[unroll]
            for lane in 0..lanes {
                zero_sum += zero_sums[lane];
                error_sum += error_sums[lane];
            }
            errors[ABSOLUTE_POS * ITERATIONS + iteration] = error_sum;
            zero = zero_sum / group as f32;
            zeros[ABSOLUTE_POS * comptime!(ITERATIONS + 1) + iteration + 1] = zero;
        }
    }
}

/// Quantizes groups with the zero points of iteration `selected`, one group per unit.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn hqq_quantize<F: Float>(
    input: &Tensor<F>,
    inverse_scales: &Array<f32>,
    zeros: &Array<f32>,
    codes: &mut Array<u32>,
    params: QuantParams,
    rows: usize,
    cols: usize,
    group: usize,
    words_per_row: usize,
    selected: usize,
    #[comptime] bits: u32,
    #[define(F)] _dtype: StorageType,
) {
    let groups = cols.div_ceil(group);
    if ABSOLUTE_POS < rows * groups {
        let (row, start) = (ABSOLUTE_POS / groups, (ABSOLUTE_POS % groups) * group);
        let inverse_scale = inverse_scales[ABSOLUTE_POS];
        let finite = (inverse_scale.to_bits() & 0x7FFF_FFFF) < 0x7F80_0000;
        let zero = zeros[ABSOLUTE_POS * comptime!(ITERATIONS + 1) + selected];
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
                let code = hqq::code(x, inverse_scale, zero, params.max, params.opaque_zero) as u32;
                values[i] = select_bits(finite, code, 0u32);
            }
            pack_word(codes, row * words_per_row + at / per * words, &values, bits, per);
            at += per;
        }
    }
}

/// Quantizes rows by QQQ, one row per unit.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn qqq_quantize<F: Float, S: StepRounding>(
    input: &Tensor<F>,
    codes: &mut Array<u32>,
    scales: &mut Array<u32>,
    outer: &mut Array<u32>,
    rows: usize,
    cols: usize,
    group: usize,
    words_per_row: usize,
    min_value: i32,
    opaque_zero: u32,
    #[comptime] single_group: bool,
    #[define(F)] _dtype: StorageType,
) {
    if ABSOLUTE_POS < rows {
        let row = ABSOLUTE_POS;
        let groups = cols.div_ceil(group);
        let row_range = group_min_max::<F>(input, row, 0usize, cols, 0usize, 1usize);
        let mut row_amax = 0.0f32.runtime();
        for index in 0..groups {
            let start = index * group;
            let end = if start + group < cols { start + group } else { cols };
            let range = group_min_max::<F>(input, row, start, end, 0usize, 1usize);
            let amax = max_f32(max_f32(-range.low, range.high), 0.0);
            let scale = if comptime!(single_group) { S::round(amax / 7.0) } else { qqq::group_scale::<S>(amax) };
            scales[row * groups + index] = scale.to_bits();
            let mut at = start;
            while at < start + group {
                let mut word = 0u32.runtime();
                #[unroll]
                for i in 0..8usize {
                    if at + i < cols {
                        let code =
                            qqq::code::<S>(f32::cast_from(input[row * input.stride(0) + at + i]), scale, min_value);
                        let value = S::round(code as f32 * scale);
                        row_amax = max_f32(row_amax, f32::from_bits(value.to_bits() & 0x7FFF_FFFF));
                        word |= (code as u32 & 0xF) << comptime!(i as u32 * 4);
                    }
                }
                codes[row * words_per_row + at / 8] = select_bits(row_range.finite == 1, word, 0u32);
                at += 8usize;
            }
        }
        let mut row_scale = S::round(prevent_fma(row_amax, opaque_zero) / 127.0);
        if comptime!(single_group) {
            row_scale = S::round(f32::from_bits(scales[row]) / 16.0);
        }
        for index in 0..groups {
            let at = row * groups + index;
            let mut related = qqq::relative_scale::<S>(f32::from_bits(scales[at]), row_scale);
            if comptime!(single_group) {
                // A single group has a single scale: the 4-bit values are the upper halves of int8 values.
                related = 16.0f32.runtime();
            }
            scales[at] = select_bits(row_range.finite == 1, related.to_bits(), 0x7FC0_0000u32);
        }
        outer[row] = select_bits(row_range.finite == 1, row_scale.to_bits(), 0x7FC0_0000u32);
    }
}

/// Quantizes blocks of 32 values with the arithmetic of ggml, one block per unit.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn ggml_quantize<F: Float>(
    input: &Tensor<F>,
    codes: &mut Array<u32>,
    scales: &mut Array<u32>,
    rows: usize,
    cols: usize,
    divisor: f32,
    opaque_zero: u32,
    #[comptime] bits: u32,
    #[define(F)] _dtype: StorageType,
) {
    let groups = cols.div_ceil(32usize);
    if ABSOLUTE_POS < rows * groups {
        let row = ABSOLUTE_POS / groups;
        let start = ABSOLUTE_POS % groups * 32usize;
        let end = if start + 32usize < cols { start + 32usize } else { cols };
        let range = group_min_max::<F>(input, row, start, end, 0usize, 1usize);
        let mut extreme = 0.0f32.runtime();
        for at in start..end {
            extreme = ggml::extreme(extreme, f32::cast_from(input[row * input.stride(0) + at]));
        }
        let scale = ggml::scale(extreme, divisor);
        let stored = to_f16(scale).to_bits();
        // The exponent of an infinity or a NaN.
        let in_range = (stored & 0x7F80_0000) < 0x7F80_0000;
        let finite = select_bits(in_range, range.finite, 0u32) == 1;
        let reciprocal = ggml::reciprocal(scale);
        let per = comptime!(32 / bits as usize);
        #[unroll]
        for index in 0..comptime!(bits as usize) {
            let mut word = 0u32.runtime();
            #[unroll]
            for i in 0..per {
                let at = start + index * per + i;
                if at < cols {
                    let x = f32::cast_from(input[row * input.stride(0) + at]);
                    let code = if comptime!(bits == 8) {
                        ggml::q8_0(x, reciprocal)
                    } else {
                        ggml::q4_0(x, reciprocal, opaque_zero)
                    };
                    word |= (code as u32 & comptime!((1u32 << bits) - 1)) << comptime!(i as u32 * bits);
                }
            }
            codes[ABSOLUTE_POS * comptime!(bits as usize) + index] = select_bits(finite, word, 0u32);
        }
        scales[ABSOLUTE_POS] = select_bits(finite, stored, 0x7FC0_0000u32);
    }
}

/// Computes the NVFP4 tensor scale from amax.
#[cube(launch_unchecked)]
pub(super) fn nvfp4_outer_scale(amax: &Array<f32>, outer: &mut Array<u32>) {
    if ABSOLUTE_POS == 0 {
        outer[0] = crate::scalar::rules::nvfp4_tensor_scale(amax[0]).to_bits();
    }
}
