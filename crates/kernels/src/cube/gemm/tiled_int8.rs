//! Tiled int8 GEMM Y = X Wᵀ for devices without int8 matrix instructions, with the scales of both operands in the
//! epilogue. X is `[inputs, k]`, W is `[outputs, k]`, both row-major int8 in 32-bit words. CubeCL's units, planes and
//! cubes are CUDA's threads, warps and blocks.
//!
//! Data flow: a cube computes a tile of [`TILE`] columns and [`TILE`] rows of Y. For each block of 32 values along k
//! its units load both operands into shared memory as integers, and each unit accumulates a register tile of 4 x 4.
//! Accumulators are integers, scaled in the epilogue.
//!
//! Traffic: W once for each [`TILE`] rows of X, X once for each [`TILE`] rows of W. Roofline: one multiply-add per
//! weight value and input row, with half a shared-memory access.

use super::spec::{BLOCK, Int8Formats, PackedLayout, grid, int8_formats};
use super::tile::{
    OUTPUTS_PER_SIDE, TILE, UNITS_PER_SIDE, VALUES_PER_LOAD, accumulate_block, load_position, output_position,
    tile_origin, zero_accumulators,
};
use crate::LayerSpec;
use crate::cube::decode::decode_packed;
use crate::cube::layer::{PlanResult, buffer_arg};
use crate::cube::matrix::storage;
use crate::cube::{Cube, CubeCapability, CubeContext, CubeLayerPlan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use cubecl::prelude::*;

/// Int8 GEMM without matrix instructions.
pub(crate) struct TiledInt8Gemm;

impl<R: Runtime> LayerKernel<Cube<R>> for TiledInt8Gemm {
    fn name(&self) -> &'static str {
        "tiled_int8_gemm"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, _: &CubeCapability) -> Result<Cost, Rejection> {
        int8_formats(spec)?;
        Ok(Cost::General)
    }

    fn prepare(&self, context: &CubeContext<R>, spec: &LayerSpec, shape: LinearShape) -> PlanResult {
        let (LinearShape { m, k, n }, dtype) = (shape, spec.dtype);
        let Int8Formats { weight, steps } = int8_formats(spec)?;
        let weight = PackedLayout::new(&weight, k);
        Ok(CubeLayerPlan::new(context, spec, shape, move |client, operands| {
            // SAFETY: the kernel checks rows against their number, and the operands have the sizes of the layer.
            unsafe {
                tiled_int8_gemm::launch_unchecked(
                    client,
                    grid(n.div_ceil(TILE), m.div_ceil(TILE)),
                    CubeDim::new_2d(UNITS_PER_SIDE as u32, UNITS_PER_SIDE as u32),
                    buffer_arg(operands.x, 4),
                    buffer_arg(operands.weight.codes, 4),
                    operands.x_scales(),
                    operands.scales(),
                    buffer_arg::<R>(operands.y, dtype.width()),
                    m,
                    n,
                    weight,
                    [storage(steps), storage(dtype)],
                );
            }
        }))
    }
}

/// Computes y = x wᵀ of int8 operands with row scales; accumulators and scales are rounded to S at every step.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn tiled_int8_gemm<S: Float, Y: Float>(
    input: &Array<u32>,
    codes: &Array<u32>,
    input_scales: &Array<f32>,
    scales: &Array<u32>,
    y: &mut Array<Y>,
    inputs: usize,
    outputs: usize,
    #[comptime] weight: PackedLayout,
    #[define(S, Y)] _dtypes: [StorageType; 2],
) {
    let mut left = SharedMemory::<i32>::new(comptime!(TILE * BLOCK));
    let mut right = SharedMemory::<i32>::new(comptime!(TILE * BLOCK));
    let mut sums = zero_accumulators::<i32>();
    let (first_row, first_input) = tile_origin();
    let (loaded_row, part) = load_position();
    let (row, input_row) = (min(first_row + loaded_row, outputs - 1), min(first_input + loaded_row, inputs - 1));
    for block in 0..comptime!(weight.blocks()) {
        // Rows are padded with zeros to whole blocks.
        #[unroll]
        for word in 0..comptime!(VALUES_PER_LOAD / 4) {
            let at = block * comptime!(BLOCK / 4) + part * comptime!(VALUES_PER_LOAD / 4) + word;
            let weight_word = codes[row * comptime!(weight.words_per_row) + at];
            let input_word = input[input_row * comptime!(weight.words_per_row) + at];
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
                let col_scale = decode_packed(scales, row, weight.scale);
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
pub(super) fn scale_int8_sum<S: Float>(sum: i32, row_scale: f32, col_scale: f32) -> f32 {
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
