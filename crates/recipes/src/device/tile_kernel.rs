//! Tiled GEMMs Y = X Wᵀ on packed weights for devices without matrix instructions. X is `[inputs, k]`, W is `[outputs,
//! k]` in packed words. CubeCL's units, planes and cubes are CUDA's threads, warps and blocks.
//!
//! Data flow: a cube computes a tile of [`TILE`] columns and [`TILE`] rows of Y. For each block of 32 values along k
//! its units load both operands into shared memory, the weight dequantized or as integers, and each unit accumulates a
//! register tile of 4 x 4. Int8 accumulators are integers, scaled in the epilogue.
//!
//! Traffic: W once for each [`TILE`] rows of X, X once for each [`TILE`] rows of W. Roofline: one multiply-add per
//! weight value and input row, with half a shared-memory access.

use super::kernels::{ZeroKind, decode, unpack};
use super::product_kernel::number;
use crate::Element;
use crate::packing::BLOCK;
use cubecl::prelude::*;

/// Weight rows and input rows of a cube.
pub const TILE: usize = 64;

/// Units of a cube along each dimension, and rows of each operand per unit.
pub const SIDE: usize = 16;
const OWN: usize = TILE / SIDE;

/// Values that a unit loads per row and block; four units share a block.
const BROUGHT: usize = BLOCK * TILE / (SIDE * SIDE);

/// Compile-time parameters of the GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileForm {
    /// Values per row of both operands (k).
    pub cols: usize,
    /// Words of quantized values per row; for int8 GEMMs of either operand.
    pub words_per_row: usize,
    /// Values of a row that share a scale.
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

/// Computes y = x wᵀ with dequantized weights.
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
    let (loaded_row, part) = (UNIT_POS as usize / (BLOCK / BROUGHT), UNIT_POS as usize % (BLOCK / BROUGHT));
    // Rows beyond the last one repeat it; their results are not stored.
    let (row, input_row) = (min(first_row + loaded_row, outputs - 1), min(first_input + loaded_row, inputs - 1));
    let groups = comptime!(form.cols.div_ceil(form.group));
    for block in 0..comptime!(form.blocks()) {
        #[unroll]
        for i in 0..BROUGHT {
            let at = part * BROUGHT + i;
            let col = block * BLOCK + at;
            let mut weight_value = 0.0f32.runtime();
            let mut input_value = 0.0f32.runtime();
            if col < comptime!(form.cols) {
                let bits = comptime!(form.element.bits());
                let code = unpack(codes, row * comptime!(form.words_per_row), col, bits);
                let group = row * groups + col / comptime!(form.group);
                let scale = decode(unpack(scales, 0, group, comptime!(form.scale.bits())), comptime!(form.scale));
                let decoded = number(code, form.element);
                weight_value = match comptime!(form.zero) {
                    ZeroKind::InSteps(element) => {
                        (decoded - decode(unpack(zeros, 0, group, comptime!(element.bits())), element)) * scale
                    }
                    ZeroKind::InUnits(element) => {
                        let midpoint = comptime!((1u32 << (bits - 1)) as f32);
                        (decoded - midpoint) * scale
                            + decode(unpack(zeros, 0, group, comptime!(element.bits())), element)
                    }
                    _ => decoded * scale,
                };
                input_value = f32::cast_from(input[input_row * comptime!(form.cols) + col]);
            }
            left[at * TILE + loaded_row] = weight_value;
            right[at * TILE + loaded_row] = input_value;
        }
        sync_cube();
        add_block::<f32>(&left, &right, &mut sums);
        sync_cube();
    }
    #[unroll]
    for i in 0..OWN {
        #[unroll]
        for j in 0..OWN {
            let (row, input_row) = own_place(first_row, first_input, i, j);
            if row < outputs && input_row < inputs {
                y[input_row * outputs + row] = F::cast_from(sums[comptime!(i * OWN + j)]);
            }
        }
    }
}

/// Computes y = x wᵀ of int8 operands with row scales; accumulators and scales are rounded to S at every step.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn tile_code_product<S: Float, Y: Float>(
    input: &Array<u32>,
    codes: &Array<u32>,
    input_scales: &Array<f32>,
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
    let (loaded_row, part) = (UNIT_POS as usize / (BLOCK / BROUGHT), UNIT_POS as usize % (BLOCK / BROUGHT));
    let (row, input_row) = (min(first_row + loaded_row, outputs - 1), min(first_input + loaded_row, inputs - 1));
    for block in 0..comptime!(form.blocks()) {
        // Rows are padded with zeros to whole blocks.
        #[unroll]
        for word in 0..comptime!(BROUGHT / 4) {
            let at = block * comptime!(BLOCK / 4) + part * comptime!(BROUGHT / 4) + word;
            let weight_word = codes[row * comptime!(form.words_per_row) + at];
            let input_word = input[input_row * comptime!(form.words_per_row) + at];
            #[unroll]
            for i in 0..4usize {
                let index = (part * BROUGHT + comptime!(4 * word + i)) * TILE + loaded_row;
                left[index] = signed_byte(weight_word, i);
                right[index] = signed_byte(input_word, i);
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
            let (row, input_row) = own_place(first_row, first_input, i, j);
            if row < outputs && input_row < inputs {
                let col_scale = decode(unpack(scales, 0, row, comptime!(form.scale.bits())), comptime!(form.scale));
                y[input_row * outputs + row] = Y::cast_from(scaled_code_sum::<S>(
                    sums[comptime!(i * OWN + j)],
                    input_scales[input_row],
                    col_scale,
                ));
            }
        }
    }
}

/// Multiplies an int8 accumulator by its row scale, then its column scale, rounding at each step.
#[cube]
pub fn scaled_code_sum<S: Float>(sum: i32, row_scale: f32, col_scale: f32) -> f32 {
    rounded::<S>(rounded::<S>(rounded::<S>(sum as f32) * rounded::<S>(row_scale)) * rounded::<S>(col_scale))
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

/// First weight row and first input row of a cube.
#[cube]
fn firsts() -> (usize, usize) {
    ((CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize * TILE, CUBE_POS_Z as usize * TILE)
}

/// Weight row and input row of an accumulator; adjacent units write adjacent outputs.
#[cube]
fn own_place(first_row: usize, first_input: usize, #[comptime] i: usize, #[comptime] j: usize) -> (usize, usize) {
    (first_row + comptime!(i * SIDE) + UNIT_POS_X as usize, first_input + comptime!(j * SIDE) + UNIT_POS_Y as usize)
}

/// Accumulates a block.
#[cube]
fn add_block<A: Numeric>(left: &SharedMemory<A>, right: &SharedMemory<A>, sums: &mut Array<A>) {
    let (x, y) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    for at in 0..BLOCK {
        let mut input_values = Array::<A>::new(OWN);
        #[unroll]
        for j in 0..OWN {
            input_values[j] = right[at * TILE + comptime!(j * SIDE) + y];
        }
        #[unroll]
        for i in 0..OWN {
            let weight_value = left[at * TILE + comptime!(i * SIDE) + x];
            #[unroll]
            for j in 0..OWN {
                sums[comptime!(i * OWN + j)] += weight_value * input_values[j];
            }
        }
    }
}
