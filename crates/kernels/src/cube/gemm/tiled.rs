//! Tiled dequantizing GEMM Y = X Wᵀ on packed weights for devices without matrix instructions. X is `[inputs, k]` in a
//! float dtype, W is `[outputs, k]` in packed words. CubeCL's units, planes and cubes are CUDA's threads, warps and
//! blocks.
//!
//! Data flow: a cube computes a tile of [`TILE`] columns and [`TILE`] rows of Y. For each block of 32 values along k
//! its units load both operands into shared memory, the weight dequantized, and each unit accumulates a register tile
//! of 4 x 4.
//!
//! Traffic: W once for each [`TILE`] rows of X, X once for each [`TILE`] rows of W. Roofline: one multiply-add per
//! weight value and input row, with half a shared-memory access.

use super::spec::{BLOCK, PackedLayout, check_rows, dequantized_format, grid};
use super::tile::{
    OUTPUTS_PER_SIDE, TILE, UNITS_PER_SIDE, VALUES_PER_LOAD, accumulate_block, load_position, output_position,
    tile_origin, zero_accumulators,
};
use crate::LayerSpec;
use crate::cube::decode::{DequantMode, decode_fast, decode_packed, unpack_value};
use crate::cube::layer::{PlanResult, buffer_arg};
use crate::cube::matrix::storage;
use crate::cube::{Cube, CubeCapability, CubeContext, CubeLayerPlan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use cubecl::prelude::*;

/// Maximum input rows; for more rows, dequantizing the weight once is cheaper.
const MAX_ROWS: usize = 64;

/// Dequantizing GEMM for some input rows, without matrix instructions.
pub(crate) struct TiledGemm;

impl<R: Runtime> LayerKernel<Cube<R>> for TiledGemm {
    fn name(&self) -> &'static str {
        "tiled_gemm"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, _: &CubeCapability) -> Result<Cost, Rejection> {
        dequantized_format(spec)?;
        check_rows(shape, MAX_ROWS)?;
        Ok(Cost::General)
    }

    fn prepare(&self, context: &CubeContext<R>, spec: &LayerSpec, shape: LinearShape) -> PlanResult {
        let (LinearShape { m, k, n }, dtype) = (shape, spec.dtype);
        let weight = PackedLayout::new(&dequantized_format(spec)?, k);
        Ok(CubeLayerPlan::new(context, spec, shape, move |client, operands| {
            // SAFETY: the kernel checks rows and columns against their number, and the operands have the sizes of the
            // layer.
            unsafe {
                tiled_dequant_gemm::launch_unchecked(
                    client,
                    grid(n.div_ceil(TILE), m.div_ceil(TILE)),
                    CubeDim::new_2d(UNITS_PER_SIDE as u32, UNITS_PER_SIDE as u32),
                    buffer_arg(operands.x, dtype.width()),
                    buffer_arg(operands.weight.codes, 4),
                    operands.scales(),
                    operands.zeros(),
                    buffer_arg::<R>(operands.y, dtype.width()),
                    m,
                    n,
                    weight,
                    storage(dtype),
                );
            }
        }))
    }
}

/// Computes y = x wᵀ with dequantized weights.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn tiled_dequant_gemm<F: Float>(
    input: &Array<F>,
    codes: &Array<u32>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    y: &mut Array<F>,
    inputs: usize,
    outputs: usize,
    #[comptime] weight: PackedLayout,
    #[define(F)] _dtype: StorageType,
) {
    let mut left = SharedMemory::<f32>::new(comptime!(TILE * BLOCK));
    let mut right = SharedMemory::<f32>::new(comptime!(TILE * BLOCK));
    let mut sums = zero_accumulators::<f32>();
    let (first_row, first_input) = tile_origin();
    let (loaded_row, part) = load_position();
    // Rows beyond the last one repeat it; their results are not stored.
    let (row, input_row) = (min(first_row + loaded_row, outputs - 1), min(first_input + loaded_row, inputs - 1));
    for block in 0..comptime!(weight.blocks()) {
        #[unroll]
        for i in 0..VALUES_PER_LOAD {
            let at = part * VALUES_PER_LOAD + i;
            let col = block * BLOCK + at;
            let mut weight_value = 0.0f32.runtime();
            let mut input_value = 0.0f32.runtime();
            if col < comptime!(weight.cols) {
                let bits = comptime!(weight.element.bits());
                let code = unpack_value(codes, row * comptime!(weight.words_per_row), col, bits);
                let group = row * comptime!(weight.groups_per_row()) + col / comptime!(weight.group);
                let scale = decode_packed(scales, group, weight.scale);
                let decoded = decode_fast(code, weight.element);
                weight_value = match comptime!(weight.zero) {
                    DequantMode::ZeroBeforeScale(element) => (decoded - decode_packed(zeros, group, element)) * scale,
                    DequantMode::ZeroAfterScale(element) => {
                        let midpoint = comptime!((1u32 << (bits - 1)) as f32);
                        (decoded - midpoint) * scale + decode_packed(zeros, group, element)
                    }
                    _ => decoded * scale,
                };
                input_value = f32::cast_from(input[input_row * comptime!(weight.cols) + col]);
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
