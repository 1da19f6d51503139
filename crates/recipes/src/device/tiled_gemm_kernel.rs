//! Tiled GEMMs Y = X Wᵀ on packed weights for devices without matrix instructions. X is `[inputs, k]`, W is `[outputs,
//! k]` in packed words. CubeCL's units, planes and cubes are CUDA's threads, warps and blocks.
//!
//! Data flow: a cube computes a tile of [`TILE`] columns and [`TILE`] rows of Y. For each block of 32 values along k
//! its units load both operands into shared memory, the weight dequantized or as integers, and each unit accumulates a
//! register tile of 4 x 4. Int8 accumulators are integers, scaled in the epilogue.
//!
//! Traffic: W once for each [`TILE`] rows of X, X once for each [`TILE`] rows of W. Roofline: one multiply-add per
//! weight value and input row, with half a shared-memory access.

use super::skinny_gemm_kernel::decode_fast;
use crate::Element;
use crate::packing::BLOCK;
use calorimeter_kernels::cube::decode::{DequantMode, decode, unpack_value};
use cubecl::prelude::*;

/// Weight rows and input rows of a cube.
pub const TILE: usize = 64;

/// Units of a cube along each dimension, and rows of each operand per unit.
pub const UNITS_PER_SIDE: usize = 16;
const OUTPUTS_PER_SIDE: usize = TILE / UNITS_PER_SIDE;

/// Values that a unit loads per row and block; four units share a block.
const VALUES_PER_LOAD: usize = BLOCK * TILE / (UNITS_PER_SIDE * UNITS_PER_SIDE);

/// Compile-time parameters of the GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TiledGemmConfig {
    /// Values per row of both operands (k).
    pub cols: usize,
    /// Words of quantized values per row; for int8 GEMMs of either operand.
    pub words_per_row: usize,
    /// Values of a row that share a scale.
    pub group: usize,
    pub element: Element,
    pub scale: Element,
    pub zero: DequantMode,
}

impl TiledGemmConfig {
    fn blocks(&self) -> usize {
        self.cols.div_ceil(BLOCK)
    }
}

/// Computes y = x wᵀ with dequantized weights.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn tiled_dequant_gemm<F: Float>(
    input: &Array<F>,
    codes: &Array<u32>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    y: &mut Array<F>,
    inputs: usize,
    outputs: usize,
    #[comptime] form: TiledGemmConfig,
    #[define(F)] _dtype: StorageType,
) {
    let mut left = SharedMemory::<f32>::new(comptime!(TILE * BLOCK));
    let mut right = SharedMemory::<f32>::new(comptime!(TILE * BLOCK));
    let mut sums = zero_accumulators::<f32>();
    let (first_row, first_input) = tile_origin();
    let (loaded_row, part) =
        (UNIT_POS as usize / (BLOCK / VALUES_PER_LOAD), UNIT_POS as usize % (BLOCK / VALUES_PER_LOAD));
    // Rows beyond the last one repeat it; their results are not stored.
    let (row, input_row) = (min(first_row + loaded_row, outputs - 1), min(first_input + loaded_row, inputs - 1));
    let groups = comptime!(form.cols.div_ceil(form.group));
    for block in 0..comptime!(form.blocks()) {
        #[unroll]
        for i in 0..VALUES_PER_LOAD {
            let at = part * VALUES_PER_LOAD + i;
            let col = block * BLOCK + at;
            let mut weight_value = 0.0f32.runtime();
            let mut input_value = 0.0f32.runtime();
            if col < comptime!(form.cols) {
                let bits = comptime!(form.element.bits());
                let code = unpack_value(codes, row * comptime!(form.words_per_row), col, bits);
                let group = row * groups + col / comptime!(form.group);
                let scale = decode(unpack_value(scales, 0, group, comptime!(form.scale.bits())), comptime!(form.scale));
                let decoded = decode_fast(code, form.element);
                weight_value = match comptime!(form.zero) {
                    DequantMode::ZeroBeforeScale(element) => {
                        (decoded - decode(unpack_value(zeros, 0, group, comptime!(element.bits())), element)) * scale
                    }
                    DequantMode::ZeroAfterScale(element) => {
                        let midpoint = comptime!((1u32 << (bits - 1)) as f32);
                        (decoded - midpoint) * scale
                            + decode(unpack_value(zeros, 0, group, comptime!(element.bits())), element)
                    }
                    _ => decoded * scale,
                };
                input_value = f32::cast_from(input[input_row * comptime!(form.cols) + col]);
            }
            left[at * TILE + loaded_row] = weight_value;
            right[at * TILE + loaded_row] = input_value;
        }
        sync_cube();
        accumulate_block::<f32>(&left, &right, &mut sums);
        sync_cube();
    }
    #[unroll]
    for i in 0..OUTPUTS_PER_SIDE {
        #[unroll]
        for j in 0..OUTPUTS_PER_SIDE {
            let (row, input_row) = output_position(first_row, first_input, i, j);
            if row < outputs && input_row < inputs {
                y[input_row * outputs + row] = F::cast_from(sums[comptime!(i * OUTPUTS_PER_SIDE + j)]);
            }
        }
    }
}

/// Computes y = x wᵀ of int8 operands with row scales; accumulators and scales are rounded to S at every step.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn tiled_int8_gemm<S: Float, Y: Float>(
    input: &Array<u32>,
    codes: &Array<u32>,
    input_scales: &Array<f32>,
    scales: &Array<u32>,
    y: &mut Array<Y>,
    inputs: usize,
    outputs: usize,
    #[comptime] form: TiledGemmConfig,
    #[define(S, Y)] _dtypes: [StorageType; 2],
) {
    let mut left = SharedMemory::<i32>::new(comptime!(TILE * BLOCK));
    let mut right = SharedMemory::<i32>::new(comptime!(TILE * BLOCK));
    let mut sums = zero_accumulators::<i32>();
    let (first_row, first_input) = tile_origin();
    let (loaded_row, part) =
        (UNIT_POS as usize / (BLOCK / VALUES_PER_LOAD), UNIT_POS as usize % (BLOCK / VALUES_PER_LOAD));
    let (row, input_row) = (min(first_row + loaded_row, outputs - 1), min(first_input + loaded_row, inputs - 1));
    for block in 0..comptime!(form.blocks()) {
        // Rows are padded with zeros to whole blocks.
        #[unroll]
        for word in 0..comptime!(VALUES_PER_LOAD / 4) {
            let at = block * comptime!(BLOCK / 4) + part * comptime!(VALUES_PER_LOAD / 4) + word;
            let weight_word = codes[row * comptime!(form.words_per_row) + at];
            let input_word = input[input_row * comptime!(form.words_per_row) + at];
            #[unroll]
            for i in 0..4usize {
                let index = (part * VALUES_PER_LOAD + comptime!(4 * word + i)) * TILE + loaded_row;
                left[index] = signed_byte(weight_word, i);
                right[index] = signed_byte(input_word, i);
            }
        }
        sync_cube();
        accumulate_block::<i32>(&left, &right, &mut sums);
        sync_cube();
    }
    #[unroll]
    for i in 0..OUTPUTS_PER_SIDE {
        #[unroll]
        for j in 0..OUTPUTS_PER_SIDE {
            let (row, input_row) = output_position(first_row, first_input, i, j);
            if row < outputs && input_row < inputs {
                let col_scale =
                    decode(unpack_value(scales, 0, row, comptime!(form.scale.bits())), comptime!(form.scale));
                y[input_row * outputs + row] = Y::cast_from(scale_int8_sum::<S>(
                    sums[comptime!(i * OUTPUTS_PER_SIDE + j)],
                    input_scales[input_row],
                    col_scale,
                ));
            }
        }
    }
}

/// Multiplies an int8 accumulator by its row scale, then its column scale, rounding at each step.
#[cube]
pub fn scale_int8_sum<S: Float>(sum: i32, row_scale: f32, col_scale: f32) -> f32 {
    round_to::<S>(round_to::<S>(round_to::<S>(sum as f32) * round_to::<S>(row_scale)) * round_to::<S>(col_scale))
}

#[cube]
fn round_to<S: Float>(x: f32) -> f32 {
    f32::cast_from(S::cast_from(x))
}

#[cube]
fn signed_byte(word: u32, #[comptime] at: usize) -> i32 {
    (word << comptime!(24 - 8 * at as u32)) as i32 >> 24i32
}

#[cube]
fn zero_accumulators<A: Numeric>() -> Array<A> {
    let mut sums = Array::<A>::new(comptime!(OUTPUTS_PER_SIDE * OUTPUTS_PER_SIDE));
    #[unroll]
    for at in 0..comptime!(OUTPUTS_PER_SIDE * OUTPUTS_PER_SIDE) {
        sums[at] = A::from_int(0);
    }
    sums
}

/// First weight row and first input row of a cube.
#[cube]
fn tile_origin() -> (usize, usize) {
    ((CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize * TILE, CUBE_POS_Z as usize * TILE)
}

/// Weight row and input row of an accumulator; adjacent units write adjacent outputs.
#[cube]
fn output_position(first_row: usize, first_input: usize, #[comptime] i: usize, #[comptime] j: usize) -> (usize, usize) {
    (
        first_row + comptime!(i * UNITS_PER_SIDE) + UNIT_POS_X as usize,
        first_input + comptime!(j * UNITS_PER_SIDE) + UNIT_POS_Y as usize,
    )
}

/// Accumulates a block.
#[cube]
fn accumulate_block<A: Numeric>(left: &SharedMemory<A>, right: &SharedMemory<A>, sums: &mut Array<A>) {
    let (x, y) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);
    for at in 0..BLOCK {
        let mut input_values = Array::<A>::new(OUTPUTS_PER_SIDE);
        #[unroll]
        for j in 0..OUTPUTS_PER_SIDE {
            input_values[j] = right[at * TILE + comptime!(j * UNITS_PER_SIDE) + y];
        }
        #[unroll]
        for i in 0..OUTPUTS_PER_SIDE {
            let weight_value = left[at * TILE + comptime!(i * UNITS_PER_SIDE) + x];
            #[unroll]
            for j in 0..OUTPUTS_PER_SIDE {
                sums[comptime!(i * OUTPUTS_PER_SIDE + j)] += weight_value * input_values[j];
            }
        }
    }
}
