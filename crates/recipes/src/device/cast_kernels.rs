//! Cast kernels: matrices to 8-bit floats and back to f32, with the arithmetic of [`crate::scalar`]. A matrix consists
//! of lines of contiguous values, rows or columns; positions in a line are counted in vector accesses. CubeCL's units,
//! planes and cubes are CUDA's threads, warps and blocks.
//!
//! Data flow: for a tensor scale, cubes first compute partial amax, which the casting kernel reduces. For row scales, a
//! cube loads its line into registers if it fits, reduces amax and casts. Traffic: the matrix once, or twice for a
//! tensor scale and for lines that exceed the registers; f32 results once. Roofline: memory bandwidth.

use super::kernels::decode;
use crate::Element;
use crate::scalar::rounding::either;
use crate::scalar::rules::{Rule, Terms};
use cubecl::prelude::*;

/// Values per block of block scales.
pub const BLOCK: usize = 32;
/// Units of a cube in kernels with a fixed cube size.
pub const UNITS: usize = 256;
/// Maximum number of partial amax.
pub const PARTS: usize = 512;

/// Compile-time parameters of a cast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CastForm {
    /// Element type of the quantized values.
    pub element: Element,
    /// Applies scales to the values.
    pub scaled: bool,
}

/// Scale of a group.
#[derive(CubeType, Clone, Copy)]
struct Shared {
    /// Largest magnitude of the group.
    largest: f32,
    /// Scale as computed.
    scale: f32,
    /// Scale as stored: NaN if a value or the scale is not finite.
    given: f32,
    finite: bool,
}

/// Bit pattern of |x|: ordered like magnitudes, with infinities and NaN last.
#[cube]
fn magnitude(x: f32) -> u32 {
    x.to_bits() & 0x7FFF_FFFF
}

#[cube]
fn largest_within<N: Size>(values: Vector<f32, N>) -> u32 {
    let mut amax_bits = 0u32.runtime();
    #[unroll]
    for at in 0..N::value() {
        amax_bits = max(amax_bits, magnitude(values[at]));
    }
    amax_bits
}

/// Reduces amax over all units of a cube; `units` is a power of two.
#[cube]
fn largest_of_units(bits: u32, #[comptime] units: usize) -> u32 {
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
fn share<R: Rule>(amax_bits: u32, params: Terms) -> Shared {
    let largest = f32::from_bits(amax_bits);
    let scale = R::scale(-largest, largest, largest, params);
    let finite = amax_bits < 0x7F80_0000 && magnitude(scale) < 0x7F80_0000;
    let given = f32::from_bits(either(finite, scale.to_bits(), 0x7FC0_0000u32));
    Shared { largest, scale, given, finite }
}

#[cube]
fn number<R: Rule>(x: f32, shared: Shared, params: Terms, #[comptime] form: CastForm) -> f32 {
    let code = R::code(x, shared.scale, 0.0f32.runtime(), shared.largest, params);
    let number = decode(either(shared.finite, code, 0u32), comptime!(form.element));
    if comptime!(form.scaled) { number * shared.given } else { number }
}

#[cube]
fn numbers<R: Rule, N: Size>(
    values: Vector<f32, N>,
    shared: Shared,
    params: Terms,
    #[comptime] form: CastForm,
) -> Vector<f32, N> {
    let mut numbers = Vector::<f32, N>::empty();
    #[unroll]
    for at in 0..N::value() {
        numbers[at] = number::<R>(values[at], shared, params, form);
    }
    numbers
}

/// Computes a partial amax per cube.
#[cube(launch_unchecked)]
pub fn largest_of_parts<F: Float, N: Size>(
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
        amax_bits = max(amax_bits, largest_within::<N>(values));
        at += CUBE_COUNT * UNITS;
    }
    let amax_bits = largest_of_units(amax_bits, UNITS);
    if UNIT_POS == 0 {
        parts[CUBE_POS] = f32::from_bits(amax_bits);
    }
}

/// Casts with a tensor scale.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn cast_whole<F: Float, N: Size, R: Rule>(
    input: &Array<Vector<F, N>>,
    parts: &Array<f32>,
    output: &mut Array<Vector<f32, N>>,
    scales: &mut Array<f32>,
    params: Terms,
    count: usize,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[comptime] form: CastForm,
    #[define(F)] _dtype: StorageType,
) {
    let mut amax_bits = 0u32.runtime();
    let mut part = UNIT_POS as usize;
    while part < count {
        amax_bits = max(amax_bits, parts[part].to_bits());
        part += UNITS;
    }
    let shared = share::<R>(largest_of_units(amax_bits, UNITS), params);
    if ABSOLUTE_POS == 0 {
        scales[0] = shared.given;
    }
    let mut at = ABSOLUTE_POS;
    while at < lines * pieces {
        let values = Vector::<f32, N>::cast_from(input[at / pieces * stride + at % pieces]);
        output[at] = numbers::<R, N>(values, shared, params, form);
        at += CUBE_COUNT * UNITS;
    }
}

/// Casts lines with a scale each, one line per cube.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn cast_along<F: Float, N: Size, R: Rule>(
    input: &Array<Vector<F, N>>,
    output: &mut Array<Vector<f32, N>>,
    scales: &mut Array<f32>,
    params: Terms,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[comptime] units: usize,
    #[comptime] register_accesses: Option<usize>,
    #[comptime] form: CastForm,
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
                    amax_bits = max(amax_bits, largest_within::<N>(cached[access]));
                }
            }
        } else {
            let mut at = lane;
            while at < pieces {
                amax_bits = max(amax_bits, largest_within::<N>(Vector::cast_from(input[line * stride + at])));
                at += units;
            }
        }
        let shared = share::<R>(largest_of_units(amax_bits, units), params);
        if lane == 0 {
            scales[line] = shared.given;
        }
        if comptime!(register_accesses.is_some()) {
            #[unroll]
            for access in 0..comptime!(register_accesses.unwrap_or(1)) {
                let at = lane + access * units;
                if at < pieces {
                    output[line * pieces + at] = numbers::<R, N>(cached[access], shared, params, form);
                }
            }
        } else {
            let mut at = lane;
            while at < pieces {
                let values = Vector::cast_from(input[line * stride + at]);
                output[line * pieces + at] = numbers::<R, N>(values, shared, params, form);
                at += units;
            }
        }
    }
}

/// Casts with a scale per position across all lines; each cube processes several adjacent positions.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn cast_across<F: Float, N: Size, R: Rule>(
    input: &Array<Vector<F, N>>,
    output: &mut Array<Vector<f32, N>>,
    scales: &mut Array<f32>,
    params: Terms,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[comptime] units_x: usize,
    #[comptime] units_y: usize,
    #[comptime] register_accesses: Option<usize>,
    #[comptime] form: CastForm,
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
            scales[at * N::value() + i] = share::<R>(amax_bits[i], params).given;
        }
    }
    if comptime!(register_accesses.is_some()) {
        #[unroll]
        for access in 0..comptime!(register_accesses.unwrap_or(1)) {
            let line = first + access * units_y;
            if line < end {
                output[line * pieces + at] = beside_numbers::<R, N>(cached[access], &amax_bits, params, form);
            }
        }
    } else {
        let mut line = first;
        while line < end {
            let values = Vector::cast_from(input[line * stride + at]);
            output[line * pieces + at] = beside_numbers::<R, N>(values, &amax_bits, params, form);
            line += units_y;
        }
    }
}

/// Casts a vector whose values have separate scales.
#[cube]
fn beside_numbers<R: Rule, N: Size>(
    values: Vector<f32, N>,
    amax_bits: &Array<u32>,
    params: Terms,
    #[comptime] form: CastForm,
) -> Vector<f32, N> {
    let mut numbers = Vector::<f32, N>::empty();
    #[unroll]
    for i in 0..N::value() {
        numbers[i] = number::<R>(values[i], share::<R>(amax_bits[i], params), params, form);
    }
    numbers
}

/// Casts contiguous blocks, one access per unit; the last block of a line may be partial.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn cast_blocks_along<F: Float, N: Size, R: Rule>(
    input: &Array<Vector<F, N>>,
    output: &mut Array<Vector<f32, N>>,
    params: Terms,
    lines: usize,
    pieces: usize,
    padded: usize,
    stride: usize,
    #[comptime] form: CastForm,
    #[define(F)] _dtype: StorageType,
) {
    let (line, at, unit) = (ABSOLUTE_POS / padded, ABSOLUTE_POS % padded, UNIT_POS as usize);
    let inside = line < lines && at < pieces;
    let mut values = Vector::<f32, N>::new(0.0);
    if inside {
        values = Vector::cast_from(input[line * stride + at]);
    }
    let mut smem = SharedMemory::<u32>::new(UNITS);
    smem[unit] = largest_within::<N>(values);
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
        output[line * pieces + at] = numbers::<R, N>(values, share::<R>(amax_bits, params), params, form);
    }
}

/// Casts blocks across lines, one block per unit; the last block may be partial.
#[cube(launch_unchecked)]
pub fn cast_blocks_across<F: Float, R: Rule>(
    input: &Array<F>,
    output: &mut Array<f32>,
    params: Terms,
    lines: usize,
    len: usize,
    stride: usize,
    #[comptime] form: CastForm,
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
        let shared = share::<R>(amax_bits, params);
        #[unroll]
        for line in 0..BLOCK {
            if first + line < lines {
                output[(first + line) * len + at] = number::<R>(cached[line], shared, params, form);
            }
        }
    }
}

/// Multiplies a matmul result by row and column scales; `each_row` and `each_col` select a scale per row or column
/// instead of a single one.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn scaled<F: Float, N: Size>(
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
