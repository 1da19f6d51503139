//! Products with stored weights of more rows than registers hold, on devices without matrix instructions.
//!
//! Data flow: a cube makes a tile of [`TILE`] columns of the output for as many rows of the input. Over blocks of 32 numbers
//! its units bring both operands into shared memory, the weight's as the numbers or the integers that its codes stand for,
//! and each adds up the products of 4 rows and 4 columns in registers. Sums of integer codes are integers, under the scales
//! of their rows at the end.
//!
//! Traffic: the weight once for each [`TILE`] rows of the input, and the input once for each [`TILE`] rows of the weight.
//! Roofline: a multiplication and an addition for each code and row of the input, with half an access to shared memory.

use super::kernels::{ZeroKind, decode, unpack};
use super::product_kernel::number;
use crate::Element;
use crate::packing::BLOCK;
use cubecl::prelude::*;

/// Rows of the weight, and of the input, in a cube.
pub const TILE: usize = 64;

/// Units of a cube to each side, and rows of each operand that a unit multiplies.
pub const SIDE: usize = 16;
const OWN: usize = TILE / SIDE;

/// Numbers of a row that a unit brings: four units share a block.
const BROUGHT: usize = BLOCK * TILE / (SIDE * SIDE);

/// What is known of a product when its kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileForm {
    /// Numbers in a row of the weight, and of the input.
    pub cols: usize,
    /// Words that the codes of a row take, of either operand if both are codes.
    pub words_per_row: usize,
    /// Codes of a row that share a scale.
    pub group: usize,
    pub element: Element,
    pub scale: Element,
    pub zero: ZeroKind,
}

impl TileForm {
    fn blocks(&self) -> usize {
        self.cols.div_ceil(BLOCK)
    }
}

/// y = x wᵀ.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn tile_product<F: Float>(
    input: &Array<F>,
    codes: &Array<u32>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    y: &mut Array<F>,
    inputs: usize,
    outputs: usize,
    #[comptime] form: TileForm,
    #[define(F)] _dtype: StorageType,
) {
    let mut left = SharedMemory::<f32>::new(comptime!(TILE * BLOCK));
    let mut right = SharedMemory::<f32>::new(comptime!(TILE * BLOCK));
    let mut sums = no_sums::<f32>();
    let (first_row, first_input) = firsts();
    let (brought, part) = (UNIT_POS as usize / (BLOCK / BROUGHT), UNIT_POS as usize % (BLOCK / BROUGHT));
    // Beyond the last row the last one is read again, and what comes of it is not written.
    let (row, of_input) = (min(first_row + brought, outputs - 1), min(first_input + brought, inputs - 1));
    let groups = comptime!(form.cols.div_ceil(form.group));
    for block in 0..comptime!(form.blocks()) {
        #[unroll]
        for i in 0..BROUGHT {
            let at = part * BROUGHT + i;
            let col = block * BLOCK + at;
            let mut of_weight = 0.0f32.runtime();
            let mut met = 0.0f32.runtime();
            if col < comptime!(form.cols) {
                let bits = comptime!(form.element.bits());
                let code = unpack(codes, row * comptime!(form.words_per_row), col, bits);
                let group = row * groups + col / comptime!(form.group);
                let scale = decode(unpack(scales, 0, group, comptime!(form.scale.bits())), comptime!(form.scale));
                let plain = number(code, form.element);
                of_weight = match comptime!(form.zero) {
                    ZeroKind::InSteps(element) => {
                        (plain - decode(unpack(zeros, 0, group, comptime!(element.bits())), element)) * scale
                    }
                    ZeroKind::InUnits(element) => {
                        let middle = comptime!((1u32 << (bits - 1)) as f32);
                        (plain - middle) * scale + decode(unpack(zeros, 0, group, comptime!(element.bits())), element)
                    }
                    _ => plain * scale,
                };
                met = f32::cast_from(input[of_input * comptime!(form.cols) + col]);
            }
            left[at * TILE + brought] = of_weight;
            right[at * TILE + brought] = met;
        }
        sync_cube();
        add_block::<f32>(&left, &right, &mut sums);
        sync_cube();
    }
    #[unroll]
    for i in 0..OWN {
        #[unroll]
        for j in 0..OWN {
            let (row, of_input) = own_place(first_row, first_input, i, j);
            if row < outputs && of_input < inputs {
                y[of_input * outputs + row] = F::cast_from(sums[comptime!(i * OWN + j)]);
            }
        }
    }
}

/// y = x wᵀ of 8-bit integer codes under the scales of their rows, which were rounded to S as every step is.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn tile_code_product<S: Float, Y: Float>(
    input: &Array<u32>,
    codes: &Array<u32>,
    by_input: &Array<f32>,
    scales: &Array<u32>,
    y: &mut Array<Y>,
    inputs: usize,
    outputs: usize,
    #[comptime] form: TileForm,
    #[define(S, Y)] _dtypes: [StorageType; 2],
) {
    let mut left = SharedMemory::<i32>::new(comptime!(TILE * BLOCK));
    let mut right = SharedMemory::<i32>::new(comptime!(TILE * BLOCK));
    let mut sums = no_sums::<i32>();
    let (first_row, first_input) = firsts();
    let (brought, part) = (UNIT_POS as usize / (BLOCK / BROUGHT), UNIT_POS as usize % (BLOCK / BROUGHT));
    let (row, of_input) = (min(first_row + brought, outputs - 1), min(first_input + brought, inputs - 1));
    for block in 0..comptime!(form.blocks()) {
        // Rows of codes are filled up with zeros to whole blocks.
        #[unroll]
        for word in 0..comptime!(BROUGHT / 4) {
            let at = block * comptime!(BLOCK / 4) + part * comptime!(BROUGHT / 4) + word;
            let of_weight = codes[row * comptime!(form.words_per_row) + at];
            let met = input[of_input * comptime!(form.words_per_row) + at];
            #[unroll]
            for i in 0..4usize {
                let own = (part * BROUGHT + comptime!(4 * word + i)) * TILE + brought;
                left[own] = signed_byte(of_weight, i);
                right[own] = signed_byte(met, i);
            }
        }
        sync_cube();
        add_block::<i32>(&left, &right, &mut sums);
        sync_cube();
    }
    #[unroll]
    for i in 0..OWN {
        #[unroll]
        for j in 0..OWN {
            let (row, of_input) = own_place(first_row, first_input, i, j);
            if row < outputs && of_input < inputs {
                let of_col = decode(unpack(scales, 0, row, comptime!(form.scale.bits())), comptime!(form.scale));
                y[of_input * outputs + row] =
                    Y::cast_from(scaled_code_sum::<S>(sums[comptime!(i * OWN + j)], by_input[of_input], of_col));
            }
        }
    }
}

/// A sum of products of codes under the scales of its row and then of its column, rounded at each step.
#[cube]
pub fn scaled_code_sum<S: Float>(sum: i32, of_row: f32, of_col: f32) -> f32 {
    rounded::<S>(rounded::<S>(rounded::<S>(sum as f32) * rounded::<S>(of_row)) * rounded::<S>(of_col))
}

#[cube]
fn rounded<S: Float>(x: f32) -> f32 {
    f32::cast_from(S::cast_from(x))
}

#[cube]
fn signed_byte(word: u32, #[comptime] at: usize) -> i32 {
    (word << comptime!(24 - 8 * at as u32)) as i32 >> 24i32
}

#[cube]
fn no_sums<A: Numeric>() -> Array<A> {
    let mut sums = Array::<A>::new(comptime!(OWN * OWN));
    #[unroll]
    for at in 0..comptime!(OWN * OWN) {
        sums[at] = A::from_int(0);
    }
    sums
}

/// The first row of the weight and of the input that belong to a cube.
#[cube]
fn firsts() -> (usize, usize) {
    ((CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize * TILE, CUBE_POS_Z as usize * TILE)
}

/// The row of the weight and of the input of one of a unit's sums; neighbors write beside each other.
#[cube]
fn own_place(first_row: usize, first_input: usize, #[comptime] i: usize, #[comptime] j: usize) -> (usize, usize) {
    (first_row + comptime!(i * SIDE) + UNIT_POS_X as usize, first_input + comptime!(j * SIDE) + UNIT_POS_Y as usize)
}

/// Adds the products of a block to a unit's sums.
#[cube]
fn add_block<A: Numeric>(left: &SharedMemory<A>, right: &SharedMemory<A>, sums: &mut Array<A>) {
    let (x, y) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    for at in 0..BLOCK {
        let mut met = Array::<A>::new(OWN);
        #[unroll]
        for j in 0..OWN {
            met[j] = right[at * TILE + comptime!(j * SIDE) + y];
        }
        #[unroll]
        for i in 0..OWN {
            let of_weight = left[at * TILE + comptime!(i * SIDE) + x];
            #[unroll]
            for j in 0..OWN {
                sums[comptime!(i * OWN + j)] += of_weight * met[j];
            }
        }
    }
}
