//! Kernels that cast matrices to 8-bit floats and back, by the arithmetic in [`crate::scalar`]. A matrix is lines of contiguous
//! numbers, rows or columns; positions in a line are counted in accesses.
//!
//! Data flow: cubes that share one scale find the largest magnitudes of their parts first, which another kernel puts together
//! while it casts; where a line has its own, a cube keeps it in registers, if it fits, finds the largest and casts. Traffic: the
//! matrix once, or twice under one scale and where a line does not fit, and the numbers once, in f32. Roofline: the memory's.

use super::kernels::decode;
use crate::Element;
use crate::scalar::rounding::either;
use crate::scalar::rules::{Rule, Terms};
use cubecl::prelude::*;

/// Numbers that share a scale where blocks do.
pub const BLOCK: usize = 32;
/// Units of a cube whose number does not depend on the matrix.
pub const UNITS: usize = 256;
/// Parts that the largest magnitude of all is found in, at most.
pub const PARTS: usize = 512;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CastForm {
    /// What a code stands for.
    pub element: Element,
    /// Whether numbers are under their scales.
    pub scaled: bool,
}

/// The scale of numbers that share one.
#[derive(CubeType, Clone, Copy)]
struct Shared {
    /// Their largest magnitude.
    largest: f32,
    /// As it is computed.
    scale: f32,
    /// As it is given: NaN where something is not finite.
    given: f32,
    finite: bool,
}

/// Magnitudes are ordered as their bits are, and what is not finite comes last.
#[cube]
fn magnitude(x: f32) -> u32 {
    x.to_bits() & 0x7FFF_FFFF
}

#[cube]
fn largest_within<N: Size>(values: Vector<f32, N>) -> u32 {
    let mut most = 0u32.runtime();
    #[unroll]
    for at in 0..N::value() {
        most = max(most, magnitude(values[at]));
    }
    most
}

/// The largest of what all units of a cube have; there are a power of two of them.
#[cube]
fn largest_of_units(own: u32, #[comptime] units: usize) -> u32 {
    let lane = UNIT_POS as usize;
    let mut shared = SharedMemory::<u32>::new(units);
    shared[lane] = own;
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

/// What numbers share of whose magnitudes the largest has these bits.
#[cube]
fn share<R: Rule>(most: u32, terms: Terms) -> Shared {
    let largest = f32::from_bits(most);
    let scale = R::scale(-largest, largest, largest, terms);
    let finite = most < 0x7F80_0000 && magnitude(scale) < 0x7F80_0000;
    let given = f32::from_bits(either(finite, scale.to_bits(), 0x7FC0_0000u32));
    Shared { largest, scale, given, finite }
}

#[cube]
fn number<R: Rule>(x: f32, shared: Shared, terms: Terms, #[comptime] form: CastForm) -> f32 {
    let code = R::code(x, shared.scale, 0.0f32.runtime(), shared.largest, terms);
    let number = decode(either(shared.finite, code, 0u32), comptime!(form.element));
    if comptime!(form.scaled) { number * shared.given } else { number }
}

#[cube]
fn numbers<R: Rule, N: Size>(
    values: Vector<f32, N>,
    shared: Shared,
    terms: Terms,
    #[comptime] form: CastForm,
) -> Vector<f32, N> {
    let mut numbers = Vector::<f32, N>::empty();
    #[unroll]
    for at in 0..N::value() {
        numbers[at] = number::<R>(values[at], shared, terms, form);
    }
    numbers
}

/// The largest magnitude that each cube finds among its accesses.
#[cube(launch_unchecked)]
pub fn largest_of_parts<F: Float, N: Size>(
    input: &Array<Vector<F, N>>,
    parts: &mut Array<f32>,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[define(F)] _dtype: StorageType,
) {
    let mut most = 0u32.runtime();
    let mut at = ABSOLUTE_POS;
    while at < lines * pieces {
        let values = Vector::<f32, N>::cast_from(input[at / pieces * stride + at % pieces]);
        most = max(most, largest_within::<N>(values));
        at += CUBE_COUNT * UNITS;
    }
    let most = largest_of_units(most, UNITS);
    if UNIT_POS == 0 {
        parts[CUBE_POS] = f32::from_bits(most);
    }
}

/// Casts under one scale for all.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn cast_whole<F: Float, N: Size, R: Rule>(
    input: &Array<Vector<F, N>>,
    parts: &Array<f32>,
    output: &mut Array<Vector<f32, N>>,
    scales: &mut Array<f32>,
    terms: Terms,
    count: usize,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[comptime] form: CastForm,
    #[define(F)] _dtype: StorageType,
) {
    let mut most = 0u32.runtime();
    let mut part = UNIT_POS as usize;
    while part < count {
        most = max(most, parts[part].to_bits());
        part += UNITS;
    }
    let shared = share::<R>(largest_of_units(most, UNITS), terms);
    if ABSOLUTE_POS == 0 {
        scales[0] = shared.given;
    }
    let mut at = ABSOLUTE_POS;
    while at < lines * pieces {
        let values = Vector::<f32, N>::cast_from(input[at / pieces * stride + at % pieces]);
        output[at] = numbers::<R, N>(values, shared, terms, form);
        at += CUBE_COUNT * UNITS;
    }
}

/// Casts lines under a scale each, one by each cube.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn cast_along<F: Float, N: Size, R: Rule>(
    input: &Array<Vector<F, N>>,
    output: &mut Array<Vector<f32, N>>,
    scales: &mut Array<f32>,
    terms: Terms,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[comptime] units: usize,
    #[comptime] kept: Option<usize>,
    #[comptime] form: CastForm,
    #[define(F)] _dtype: StorageType,
) {
    let (line, lane) = (CUBE_POS, UNIT_POS as usize);
    if line < lines {
        let mut held = Array::<Vector<f32, N>>::new(comptime!(kept.unwrap_or(1)));
        let mut most = 0u32.runtime();
        if comptime!(kept.is_some()) {
            #[unroll]
            for turn in 0..comptime!(kept.unwrap_or(1)) {
                let at = lane + turn * units;
                if at < pieces {
                    held[turn] = Vector::cast_from(input[line * stride + at]);
                    most = max(most, largest_within::<N>(held[turn]));
                }
            }
        } else {
            let mut at = lane;
            while at < pieces {
                most = max(most, largest_within::<N>(Vector::cast_from(input[line * stride + at])));
                at += units;
            }
        }
        let shared = share::<R>(largest_of_units(most, units), terms);
        if lane == 0 {
            scales[line] = shared.given;
        }
        if comptime!(kept.is_some()) {
            #[unroll]
            for turn in 0..comptime!(kept.unwrap_or(1)) {
                let at = lane + turn * units;
                if at < pieces {
                    output[line * pieces + at] = numbers::<R, N>(held[turn], shared, terms, form);
                }
            }
        } else {
            let mut at = lane;
            while at < pieces {
                let values = Vector::cast_from(input[line * stride + at]);
                output[line * pieces + at] = numbers::<R, N>(values, shared, terms, form);
                at += units;
            }
        }
    }
}

/// Casts what stands at one position in all lines under a scale each, some positions beside each other by each cube.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn cast_across<F: Float, N: Size, R: Rule>(
    input: &Array<Vector<F, N>>,
    output: &mut Array<Vector<f32, N>>,
    scales: &mut Array<f32>,
    terms: Terms,
    lines: usize,
    pieces: usize,
    stride: usize,
    #[comptime] beside: usize,
    #[comptime] high: usize,
    #[comptime] kept: Option<usize>,
    #[comptime] form: CastForm,
    #[define(F)] _dtype: StorageType,
) {
    let (lane, first) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    let at = CUBE_POS * beside + lane;
    // Units behind the end of a line meet the barriers, and read and write nothing.
    let end = if at < pieces { lines } else { 0usize.runtime() };
    let mut held = Array::<Vector<f32, N>>::new(comptime!(kept.unwrap_or(1)));
    let mut most = Array::<u32>::new(N::value());
    #[unroll]
    for of in 0..N::value() {
        most[of] = 0u32.runtime();
    }
    if comptime!(kept.is_some()) {
        #[unroll]
        for turn in 0..comptime!(kept.unwrap_or(1)) {
            let line = first + turn * high;
            if line < end {
                held[turn] = Vector::cast_from(input[line * stride + at]);
                #[unroll]
                for of in 0..N::value() {
                    most[of] = max(most[of], magnitude(held[turn][of]));
                }
            }
        }
    } else {
        let mut line = first;
        while line < end {
            let values = Vector::<f32, N>::cast_from(input[line * stride + at]);
            #[unroll]
            for of in 0..N::value() {
                most[of] = max(most[of], magnitude(values[of]));
            }
            line += high;
        }
    }
    let each = N::value();
    let width = comptime!(beside * each);
    let mut together = SharedMemory::<u32>::new(comptime!(width * high));
    #[unroll]
    for of in 0..N::value() {
        together[first * width + lane * N::value() + of] = most[of];
    }
    sync_cube();
    let mut half = comptime!(high / 2).runtime();
    while half > 0 {
        if first < half {
            #[unroll]
            for of in 0..N::value() {
                let own = first * width + lane * N::value() + of;
                together[own] = max(together[own], together[own + half * width]);
            }
        }
        sync_cube();
        half /= 2;
    }
    #[unroll]
    for of in 0..N::value() {
        most[of] = together[lane * N::value() + of];
        if first == 0 && at < pieces {
            scales[at * N::value() + of] = share::<R>(most[of], terms).given;
        }
    }
    if comptime!(kept.is_some()) {
        #[unroll]
        for turn in 0..comptime!(kept.unwrap_or(1)) {
            let line = first + turn * high;
            if line < end {
                output[line * pieces + at] = beside_numbers::<R, N>(held[turn], &most, terms, form);
            }
        }
    } else {
        let mut line = first;
        while line < end {
            let values = Vector::cast_from(input[line * stride + at]);
            output[line * pieces + at] = beside_numbers::<R, N>(values, &most, terms, form);
            line += high;
        }
    }
}

/// Numbers of one access that each have a scale of their own.
#[cube]
fn beside_numbers<R: Rule, N: Size>(
    values: Vector<f32, N>,
    most: &Array<u32>,
    terms: Terms,
    #[comptime] form: CastForm,
) -> Vector<f32, N> {
    let mut numbers = Vector::<f32, N>::empty();
    #[unroll]
    for of in 0..N::value() {
        numbers[of] = number::<R>(values[of], share::<R>(most[of], terms), terms, form);
    }
    numbers
}

/// Casts blocks of lines, one access by each unit; the last block of a line may have fewer numbers.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn cast_blocks_along<F: Float, N: Size, R: Rule>(
    input: &Array<Vector<F, N>>,
    output: &mut Array<Vector<f32, N>>,
    terms: Terms,
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
    let mut together = SharedMemory::<u32>::new(UNITS);
    together[unit] = largest_within::<N>(values);
    sync_cube();
    let width = N::value();
    let group = comptime!(BLOCK / width);
    let first = unit / group * group;
    let mut most = 0u32.runtime();
    #[unroll]
    for other in 0..group {
        most = max(most, together[first + other]);
    }
    if inside {
        output[line * pieces + at] = numbers::<R, N>(values, share::<R>(most, terms), terms, form);
    }
}

/// Casts blocks that lie across lines, one by each unit; the last of them may have fewer numbers.
#[cube(launch_unchecked)]
pub fn cast_blocks_across<F: Float, R: Rule>(
    input: &Array<F>,
    output: &mut Array<f32>,
    terms: Terms,
    lines: usize,
    len: usize,
    stride: usize,
    #[comptime] form: CastForm,
    #[define(F)] _dtype: StorageType,
) {
    let (first, at) = (ABSOLUTE_POS / len * BLOCK, ABSOLUTE_POS % len);
    if first < lines {
        let mut held = Array::<f32>::new(BLOCK);
        let mut most = 0u32.runtime();
        #[unroll]
        for line in 0..BLOCK {
            if first + line < lines {
                held[line] = f32::cast_from(input[(first + line) * stride + at]);
                most = max(most, magnitude(held[line]));
            }
        }
        let shared = share::<R>(most, terms);
        #[unroll]
        for line in 0..BLOCK {
            if first + line < lines {
                output[(first + line) * len + at] = number::<R>(held[line], shared, terms, form);
            }
        }
    }
}

/// A product of codes under the scales of its rows and columns, `each` its own or one for all.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn scaled<F: Float, N: Size>(
    product: &Array<Vector<f32, N>>,
    by_row: &Array<f32>,
    by_col: &Array<f32>,
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
        let of_row = by_row[if comptime!(each_row) { row } else { 0usize.runtime() }];
        let mut of_cols = Vector::<f32, N>::empty();
        #[unroll]
        for of in 0..N::value() {
            of_cols[of] = by_col[if comptime!(each_col) { at * N::value() + of } else { 0usize.runtime() }];
        }
        // One after the other: their product alone may be too small for a float.
        output[ABSOLUTE_POS] = Vector::cast_from(product[row * stride + at] * Vector::new(of_row) * of_cols);
    }
}
