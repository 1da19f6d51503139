//! Cast kernels: matrices to 8-bit floats and back to f32, with the arithmetic of [`crate::scalar`]. A matrix consists
//! of lines of contiguous values, rows or columns; positions in a line are counted in vector accesses. CubeCL's units,
//! planes and cubes are CUDA's threads, warps and blocks.
//!
//! Data flow: for a tensor scale, cubes first compute partial amax, which the casting kernel reduces. For row scales, a
//! cube loads its line into registers if it fits, reduces amax and casts. Traffic: the matrix once, or twice for a
//! tensor scale and for lines that exceed the registers; f32 results once. Roofline: memory bandwidth.

use crate::Element;
use crate::scalar::rounding::select_bits;
use crate::scalar::rules::{QuantParams, QuantRule};
use calorimeter_kernels::cube::decode::decode;
use cubecl::prelude::*;

/// Values per block of block scales.
pub(super) const BLOCK: usize = 32;
/// Units of a cube in kernels with a fixed cube size.
pub(super) const UNITS_PER_CUBE: usize = 256;
/// Maximum number of partial amax.
pub(super) const MAX_PARTIAL_AMAX: usize = 512;

/// Compile-time parameters of a cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CastSpec {
    /// Element type of the quantized values.
    pub element: Element,
    /// Applies scales to the values.
    pub scaled: bool,
}

/// Scale of a group.
#[derive(CubeType, Clone, Copy)]
struct GroupScale {
    /// Largest magnitude of the group.
    amax: f32,
    /// Scale as computed.
    scale: f32,
    /// Scale as stored: NaN if a value or the scale is not finite.
    stored_scale: f32,
    finite: bool,
}

/// Bit pattern of |x|: ordered like magnitudes, with infinities and NaN last.
#[cube]
fn magnitude(x: f32) -> u32 {
    x.to_bits() & 0x7FFF_FFFF
}

#[cube]
fn vector_amax<N: Size>(values: Vector<f32, N>) -> u32 {
    let mut amax_bits = 0u32.runtime();
    #[unroll]
    for at in 0..N::value() {
        amax_bits = max(amax_bits, magnitude(values[at]));
    }
    amax_bits
}

/// Reduces amax over all units of a cube; `units` is a power of two.
#[cube]
fn cube_amax(bits: u32, #[comptime] units: usize) -> u32 {
    let lane = UNIT_POS as usize;
    let mut shared = SharedMemory::<u32>::new(units);
    shared[lane] = bits;
    sync_cube();
    let mut width = comptime!(units / 2).runtime();
    while width > 0 {
        if lane < width {
            shared[lane] = max(shared[lane], shared[lane + width]);
        }
        sync_cube();
        width /= 2;
    }
    shared[0]
}

/// Computes the scale of a group from the bit pattern of its amax.
#[cube]
fn group_scale<R: QuantRule>(amax_bits: u32, params: QuantParams) -> GroupScale {
    let largest = f32::from_bits(amax_bits);
    let scale = R::scale(-largest, largest, largest, params);
    let finite = amax_bits < 0x7F80_0000 && magnitude(scale) < 0x7F80_0000;
    let given = f32::from_bits(select_bits(finite, scale.to_bits(), 0x7FC0_0000u32));
    GroupScale { amax: largest, scale, stored_scale: given, finite }
}

#[cube]
fn cast_value<R: QuantRule>(x: f32, shared: GroupScale, params: QuantParams, #[comptime] form: CastSpec) -> f32 {
    let code = R::code(x, shared.scale, 0.0f32.runtime(), shared.amax, params);
    let number = decode(select_bits(shared.finite, code, 0u32), comptime!(form.element));
    if comptime!(form.scaled) { number * shared.stored_scale } else { number }
}

#[cube]
fn cast_vector<R: QuantRule, N: Size>(
    values: Vector<f32, N>,
    shared: GroupScale,
    params: QuantParams,
    #[comptime] form: CastSpec,
) -> Vector<f32, N> {
    let mut numbers = Vector::<f32, N>::empty();
    #[unroll]
    for at in 0..N::value() {
        numbers[at] = cast_value::<R>(values[at], shared, params, form);
    }
    numbers
}

/// Computes a partial amax per cube.
#[cube(launch_unchecked)]
pub(super) fn partial_amax<F: Float, N: Size>(
    input: &Array<Vector<F, N>>,
    parts: &mut Array<f32>,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[define(F)] _dtype: StorageType,
) {
    let mut amax_bits = 0u32.runtime();
    let mut at = ABSOLUTE_POS;
    while at < lines * pieces {
        let values = Vector::<f32, N>::cast_from(input[at / pieces * stride + at % pieces]);
        amax_bits = max(amax_bits, vector_amax::<N>(values));
        at += CUBE_COUNT * UNITS_PER_CUBE;
    }
    let amax_bits = cube_amax(amax_bits, UNITS_PER_CUBE);
    if UNIT_POS == 0 {
        parts[CUBE_POS] = f32::from_bits(amax_bits);
    }
}

/// Casts with a tensor scale.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn cast_per_tensor<F: Float, N: Size, R: QuantRule>(
    input: &Array<Vector<F, N>>,
    parts: &Array<f32>,
    output: &mut Array<Vector<f32, N>>,
    scales: &mut Array<f32>,
    params: QuantParams,
    count: usize,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[comptime] form: CastSpec,
    #[define(F)] _dtype: StorageType,
) {
    let mut amax_bits = 0u32.runtime();
    let mut part = UNIT_POS as usize;
    while part < count {
        amax_bits = max(amax_bits, parts[part].to_bits());
        part += UNITS_PER_CUBE;
    }
    let shared = group_scale::<R>(cube_amax(amax_bits, UNITS_PER_CUBE), params);
    if ABSOLUTE_POS == 0 {
        scales[0] = shared.stored_scale;
    }
    let mut at = ABSOLUTE_POS;
    while at < lines * pieces {
        let values = Vector::<f32, N>::cast_from(input[at / pieces * stride + at % pieces]);
        output[at] = cast_vector::<R, N>(values, shared, params, form);
        at += CUBE_COUNT * UNITS_PER_CUBE;
    }
}

/// Casts lines with a scale each, one line per cube.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn cast_contiguous_rows<F: Float, N: Size, R: QuantRule>(
    input: &Array<Vector<F, N>>,
    output: &mut Array<Vector<f32, N>>,
    scales: &mut Array<f32>,
    params: QuantParams,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[comptime] units: usize,
    #[comptime] register_accesses: Option<usize>,
    #[comptime] form: CastSpec,
    #[define(F)] _dtype: StorageType,
) {
    let (line, lane) = (CUBE_POS, UNIT_POS as usize);
    if line < lines {
        let mut cached = Array::<Vector<f32, N>>::new(comptime!(register_accesses.unwrap_or(1)));
        let mut amax_bits = 0u32.runtime();
        if comptime!(register_accesses.is_some()) {
            #[unroll]
            for access in 0..comptime!(register_accesses.unwrap_or(1)) {
                let at = lane + access * units;
                if at < pieces {
                    cached[access] = Vector::cast_from(input[line * stride + at]);
                    amax_bits = max(amax_bits, vector_amax::<N>(cached[access]));
                }
            }
        } else {
            let mut at = lane;
            while at < pieces {
                amax_bits = max(amax_bits, vector_amax::<N>(Vector::cast_from(input[line * stride + at])));
                at += units;
            }
        }
        let shared = group_scale::<R>(cube_amax(amax_bits, units), params);
        if lane == 0 {
            scales[line] = shared.stored_scale;
        }
        if comptime!(register_accesses.is_some()) {
            #[unroll]
            for access in 0..comptime!(register_accesses.unwrap_or(1)) {
                let at = lane + access * units;
                if at < pieces {
                    output[line * pieces + at] = cast_vector::<R, N>(cached[access], shared, params, form);
                }
            }
        } else {
            let mut at = lane;
            while at < pieces {
                let values = Vector::cast_from(input[line * stride + at]);
                output[line * pieces + at] = cast_vector::<R, N>(values, shared, params, form);
                at += units;
            }
        }
    }
}

/// Casts with a scale per position across all lines; each cube processes several adjacent positions.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn cast_strided_rows<F: Float, N: Size, R: QuantRule>(
    input: &Array<Vector<F, N>>,
    output: &mut Array<Vector<f32, N>>,
    scales: &mut Array<f32>,
    params: QuantParams,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[comptime] units_x: usize,
    #[comptime] units_y: usize,
    #[comptime] register_accesses: Option<usize>,
    #[comptime] form: CastSpec,
    #[define(F)] _dtype: StorageType,
) {
    let (lane, first) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    let at = CUBE_POS * units_x + lane;
    // Units beyond the end of a line only take part in the barriers.
    let end = if at < pieces { lines } else { 0usize.runtime() };
    let mut cached = Array::<Vector<f32, N>>::new(comptime!(register_accesses.unwrap_or(1)));
    let mut amax_bits = Array::<u32>::new(N::value());
    #[unroll]
    for i in 0..N::value() {
        amax_bits[i] = 0u32.runtime();
    }
    if comptime!(register_accesses.is_some()) {
        #[unroll]
        for access in 0..comptime!(register_accesses.unwrap_or(1)) {
            let line = first + access * units_y;
            if line < end {
                cached[access] = Vector::cast_from(input[line * stride + at]);
                #[unroll]
                for i in 0..N::value() {
                    amax_bits[i] = max(amax_bits[i], magnitude(cached[access][i]));
                }
            }
        }
    } else {
        let mut line = first;
        while line < end {
            let values = Vector::<f32, N>::cast_from(input[line * stride + at]);
            #[unroll]
            for i in 0..N::value() {
                amax_bits[i] = max(amax_bits[i], magnitude(values[i]));
            }
            line += units_y;
        }
    }
    let each = N::value();
    let width = comptime!(units_x * each);
    let mut smem = SharedMemory::<u32>::new(comptime!(width * units_y));
    #[unroll]
    for i in 0..N::value() {
        smem[first * width + lane * N::value() + i] = amax_bits[i];
    }
    sync_cube();
    let mut half = comptime!(units_y / 2).runtime();
    while half > 0 {
        if first < half {
            #[unroll]
            for i in 0..N::value() {
                let index = first * width + lane * N::value() + i;
                smem[index] = max(smem[index], smem[index + half * width]);
            }
        }
        sync_cube();
        half /= 2;
    }
    #[unroll]
    for i in 0..N::value() {
        amax_bits[i] = smem[lane * N::value() + i];
        if first == 0 && at < pieces {
            scales[at * N::value() + i] = group_scale::<R>(amax_bits[i], params).stored_scale;
        }
    }
    if comptime!(register_accesses.is_some()) {
        #[unroll]
        for access in 0..comptime!(register_accesses.unwrap_or(1)) {
            let line = first + access * units_y;
            if line < end {
                output[line * pieces + at] = cast_vector_per_value::<R, N>(cached[access], &amax_bits, params, form);
            }
        }
    } else {
        let mut line = first;
        while line < end {
            let values = Vector::cast_from(input[line * stride + at]);
            output[line * pieces + at] = cast_vector_per_value::<R, N>(values, &amax_bits, params, form);
            line += units_y;
        }
    }
}

/// Casts a vector whose values have separate scales.
#[cube]
fn cast_vector_per_value<R: QuantRule, N: Size>(
    values: Vector<f32, N>,
    amax_bits: &Array<u32>,
    params: QuantParams,
    #[comptime] form: CastSpec,
) -> Vector<f32, N> {
    let mut numbers = Vector::<f32, N>::empty();
    #[unroll]
    for i in 0..N::value() {
        numbers[i] = cast_value::<R>(values[i], group_scale::<R>(amax_bits[i], params), params, form);
    }
    numbers
}

/// Casts contiguous blocks, one access per unit; the last block of a line may be partial.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn cast_contiguous_blocks<F: Float, N: Size, R: QuantRule>(
    input: &Array<Vector<F, N>>,
    output: &mut Array<Vector<f32, N>>,
    params: QuantParams,
    lines: usize,
    pieces: usize,
    padded: usize,
    stride: usize,
    #[comptime] form: CastSpec,
    #[define(F)] _dtype: StorageType,
) {
    let (line, at, unit) = (ABSOLUTE_POS / padded, ABSOLUTE_POS % padded, UNIT_POS as usize);
    let inside = line < lines && at < pieces;
    let mut values = Vector::<f32, N>::new(0.0);
    if inside {
        values = Vector::cast_from(input[line * stride + at]);
    }
    let mut smem = SharedMemory::<u32>::new(UNITS_PER_CUBE);
    smem[unit] = vector_amax::<N>(values);
    sync_cube();
    let width = N::value();
    let group = comptime!(BLOCK / width);
    let first = unit / group * group;
    let mut amax_bits = 0u32.runtime();
    #[unroll]
    for neighbor in 0..group {
        amax_bits = max(amax_bits, smem[first + neighbor]);
    }
    if inside {
        output[line * pieces + at] = cast_vector::<R, N>(values, group_scale::<R>(amax_bits, params), params, form);
    }
}

/// Casts blocks across lines, one block per unit; the last block may be partial.
#[cube(launch_unchecked)]
pub(super) fn cast_strided_blocks<F: Float, R: QuantRule>(
    input: &Array<F>,
    output: &mut Array<f32>,
    params: QuantParams,
    lines: usize,
    len: usize,
    stride: usize,
    #[comptime] form: CastSpec,
    #[define(F)] _dtype: StorageType,
) {
    let (first, at) = (ABSOLUTE_POS / len * BLOCK, ABSOLUTE_POS % len);
    if first < lines {
        let mut cached = Array::<f32>::new(BLOCK);
        let mut amax_bits = 0u32.runtime();
        #[unroll]
        for line in 0..BLOCK {
            if first + line < lines {
                cached[line] = f32::cast_from(input[(first + line) * stride + at]);
                amax_bits = max(amax_bits, magnitude(cached[line]));
            }
        }
        let shared = group_scale::<R>(amax_bits, params);
        #[unroll]
        for line in 0..BLOCK {
            if first + line < lines {
                output[(first + line) * len + at] = cast_value::<R>(cached[line], shared, params, form);
            }
        }
    }
}

/// Multiplies a matmul result by row and column scales; `each_row` and `each_col` select a scale per row or column
/// instead of a single one.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn apply_scales<F: Float, N: Size>(
    product: &Array<Vector<f32, N>>,
    row_scales: &Array<f32>,
    column_scales: &Array<f32>,
    output: &mut Array<Vector<F, N>>,
    rows: usize,
    pieces: usize,
    stride: usize,
    #[comptime] each_row: bool,
    #[comptime] each_col: bool,
    #[define(F)] _dtype: StorageType,
) {
    let (row, at) = (ABSOLUTE_POS / pieces, ABSOLUTE_POS % pieces);
    if row < rows {
        let row_scale = row_scales[if comptime!(each_row) { row } else { 0usize.runtime() }];
        let mut col_scales = Vector::<f32, N>::empty();
        #[unroll]
        for i in 0..N::value() {
            col_scales[i] = column_scales[if comptime!(each_col) { at * N::value() + i } else { 0usize.runtime() }];
        }
        // Sequentially, because the product of both scales may underflow.
        output[ABSOLUTE_POS] = Vector::cast_from(product[row * stride + at] * Vector::new(row_scale) * col_scales);
    }
}
