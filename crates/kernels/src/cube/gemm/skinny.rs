//! Dequantizing GEMM Y = X Wᵀ for few rows of X, without matrix instructions; weights are dequantized in registers. X
//! is `[inputs, k]` in a float dtype, W is `[outputs, k]` in packed words. CubeCL's units, planes and cubes are CUDA's
//! threads, warps and blocks.
//!
//! Data flow: a cube computes `form.weight_rows` columns and up to `form.input_rows` rows of Y. Its units stride along
//! k, a block of 32 values each: they load the words of the block and the matching input values, dequantize in
//! registers, accumulate, and apply scale and zero point of the group to the partial sum. Units are reduced by plane
//! operations where the device has them, and in shared memory.
//!
//! Traffic: W once for each `form.input_rows` rows of X; X from cache for all cubes but the first. Roofline: memory
//! bandwidth for W, as long as about four instructions per value keep up.

use super::spec::{BLOCK, PackedLayout, check_rows, dequantized_format, grid, scale_index};
use crate::LayerSpec;
use crate::cube::capability::max_vector_width;
use crate::cube::decode::{DequantMode, decode_fast, decode_packed};
use crate::cube::layer::{PlanResult, buffer_arg};
use crate::cube::matrix::storage;
use crate::cube::{Cube, CubeCapability, CubeContext, CubeLayerPlan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use cubecl::ir::features::Plane;
use cubecl::prelude::*;

/// Maximum input rows, limited by registers.
const MAX_ROWS: usize = 8;

/// Units of a cube.
const UNITS_PER_CUBE: usize = 128;

/// Dequantizing GEMM for few input rows, without matrix instructions.
pub(crate) struct SkinnyGemm;

impl<R: Runtime> LayerKernel<Cube<R>> for SkinnyGemm {
    fn name(&self) -> &'static str {
        "skinny_gemm"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, _: &CubeCapability) -> Result<Cost, Rejection> {
        dequantized_format(spec)?;
        check_rows(shape, MAX_ROWS)?;
        Ok(Cost::General)
    }

    fn prepare(&self, context: &CubeContext<R>, spec: &LayerSpec, shape: LinearShape) -> PlanResult {
        let (LinearShape { m, n, .. }, dtype) = (shape, spec.dtype);
        let form = SkinnyGemmConfig::new(context, spec, shape)?;
        Ok(CubeLayerPlan::new(context, spec, shape, move |client, operands| {
            // SAFETY: the kernel checks rows against their number, and the operands have the sizes of the layer.
            unsafe {
                skinny_gemm::launch_unchecked(
                    client,
                    grid(n.div_ceil(form.weight_rows), m.div_ceil(form.input_rows)),
                    CubeDim::new_1d(UNITS_PER_CUBE as u32),
                    form.input_width,
                    form.word_width,
                    buffer_arg(operands.x, dtype.width() * form.input_width),
                    buffer_arg(operands.weight.codes, 4 * form.word_width),
                    operands.scales(),
                    operands.zeros(),
                    buffer_arg::<R>(operands.y, dtype.width()),
                    m,
                    n,
                    form,
                    storage(dtype),
                );
            }
        }))
    }
}

/// Compile-time parameters of the GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SkinnyGemmConfig {
    /// Layout of the packed weight.
    weight: PackedLayout,
    /// Weight rows per cube.
    weight_rows: usize,
    /// Input rows per cube.
    input_rows: usize,
    /// Units that are reduced by plane operations; 1 without plane operations.
    reduce_units: usize,
    /// Input values per access.
    input_width: usize,
    /// Weight words per access.
    word_width: usize,
}

impl SkinnyGemmConfig {
    fn new<R: Runtime>(context: &CubeContext<R>, spec: &LayerSpec, shape: LinearShape) -> Result<Self, Rejection> {
        let (LinearShape { m, k, .. }, CubeContext { client, aligned_input }) = (shape, context);
        let format = dequantized_format(spec)?;
        let properties = client.properties();
        let (hardware, planes) = (&properties.hardware, &properties.features.plane);
        let has_plane_ops = hardware.plane_size_min == hardware.plane_size_max && planes.contains(Plane::Ops);
        // Rows that are not whole blocks, and unaligned inputs, are read value by value.
        let is_vectorized = *aligned_input && k.is_multiple_of(BLOCK);
        Ok(Self {
            weight: PackedLayout::new(&format, k),
            // Number of loads in flight; with many inputs a unit has no registers for more.
            weight_rows: if format.bits() > 4 { 2 } else { 4 },
            input_rows: m.min(MAX_ROWS),
            reduce_units: if has_plane_ops { (hardware.plane_size_max as usize).min(UNITS_PER_CUBE) } else { 1 },
            input_width: if is_vectorized { max_vector_width(client, spec.dtype.width(), BLOCK) } else { 1 },
            word_width: max_vector_width(client, 4, format.bits() as usize),
        })
    }

    /// Partial sums that are reduced in shared memory.
    fn partial_sums(&self) -> usize {
        UNITS_PER_CUBE / self.reduce_units
    }
}

/// Computes y = x wᵀ.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn skinny_gemm<F: Float, X: Size, W: Size>(
    input: &Array<Vector<F, X>>,
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    y: &mut Array<F>,
    inputs: usize,
    outputs: usize,
    #[comptime] form: SkinnyGemmConfig,
    #[define(F)] _dtype: StorageType,
) {
    let unit = UNIT_POS_X as usize;
    let first_row = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize * comptime!(form.weight_rows);
    let first_input = CUBE_POS_Z as usize * comptime!(form.input_rows);
    let mut sums = Array::<f32>::new(comptime!(form.weight_rows * form.input_rows));
    #[unroll]
    for at in 0..comptime!(form.weight_rows * form.input_rows) {
        sums[at] = 0.0f32.runtime();
    }
    for iteration in 0..comptime!(form.weight.blocks().div_ceil(UNITS_PER_CUBE)) {
        let block = iteration * UNITS_PER_CUBE + unit;
        if block < comptime!(form.weight.blocks()) {
            accumulate_block::<F, X, W>(
                input,
                codes,
                scales,
                zeros,
                &mut sums,
                block,
                first_row,
                first_input,
                inputs,
                outputs,
                form,
            );
        }
    }
    let mut shared = SharedMemory::<f32>::new(comptime!(form.weight_rows * form.input_rows * form.partial_sums()));
    #[unroll]
    for at in 0..comptime!(form.weight_rows * form.input_rows) {
        let partial = if comptime!(form.reduce_units > 1) { plane_sum(sums[at]) } else { sums[at] };
        if unit.is_multiple_of(comptime!(form.reduce_units)) {
            shared[at * comptime!(form.partial_sums()) + unit / comptime!(form.reduce_units)] = partial;
        }
    }
    sync_cube();
    if unit < comptime!(form.weight_rows * form.input_rows) {
        let (row, input_row) =
            (first_row + unit / comptime!(form.input_rows), first_input + unit % comptime!(form.input_rows));
        if row < outputs && input_row < inputs {
            let mut sum = 0.0f32.runtime();
            for partial_index in 0..comptime!(form.partial_sums()) {
                sum += shared[unit * comptime!(form.partial_sums()) + partial_index];
            }
            if comptime!(form.weight.scales_in_epilogue()) {
                sum *= decode_packed(scales, row, form.weight.scale);
            }
            y[input_row * outputs + row] = F::cast_from(sum);
        }
    }
}

/// Accumulates a block of every weight row of the cube times the matching values of every input row. Rows beyond the
/// last one repeat it; their results are not stored.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn accumulate_block<F: Float, X: Size, W: Size>(
    input: &Array<Vector<F, X>>,
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    sums: &mut Array<f32>,
    block: usize,
    first_row: usize,
    first_input: usize,
    inputs: usize,
    outputs: usize,
    #[comptime] form: SkinnyGemmConfig,
) {
    let bits = comptime!(form.weight.element.bits() as usize);
    let (rows, input_rows, width) = comptime!((form.weight_rows, form.input_rows, form.input_width));
    let mut words = Array::<u32>::new(comptime!(rows * bits));
    #[unroll]
    for row_index in 0..rows {
        let row = min(first_row + row_index, outputs - 1);
        #[unroll]
        for access in 0..comptime!(bits / form.word_width) {
            let at = row * comptime!(form.weight.words_per_row) + block * bits + comptime!(access * form.word_width);
            let read = codes[at / comptime!(form.word_width)];
            #[unroll]
            for i in 0..comptime!(form.word_width) {
                words[comptime!(row_index * bits + access * form.word_width + i)] = read[i];
            }
        }
    }
    #[unroll]
    for part in 0..comptime!(BLOCK / form.weight.values_per_scale(BLOCK)) {
        let mut partial = Array::<f32>::new(comptime!(rows * input_rows));
        #[unroll]
        for at in 0..comptime!(rows * input_rows) {
            partial[at] = 0.0f32.runtime();
        }
        // Sums of the input values, which the zero point is multiplied with.
        let mut input_sums = Array::<f32>::new(input_rows);
        #[unroll]
        for input_index in 0..input_rows {
            input_sums[input_index] = 0.0f32.runtime();
        }
        #[unroll]
        for access in 0..comptime!(form.weight.values_per_scale(BLOCK) / width) {
            let first = comptime!(part * form.weight.values_per_scale(BLOCK) + access * width);
            let col = block * BLOCK + first;
            let mut input_values = Array::<f32>::new(comptime!(input_rows * width));
            #[unroll]
            for input_index in 0..input_rows {
                let at = (min(first_input + input_index, inputs - 1) * comptime!(form.weight.cols) + col) / width;
                let mut read = Vector::<f32, X>::new(0.0);
                if comptime!(form.weight.cols.is_multiple_of(BLOCK)) {
                    read = Vector::cast_from(input[at]);
                } else if col < comptime!(form.weight.cols) {
                    read = Vector::cast_from(input[at]);
                }
                #[unroll]
                for i in 0..width {
                    input_values[comptime!(input_index * width + i)] = read[i];
                    if comptime!(form.weight.zero != DequantMode::ScaleOnly) {
                        input_sums[input_index] += read[i];
                    }
                }
            }
            #[unroll]
            for row_index in 0..rows {
                #[unroll]
                for i in 0..width {
                    let at = comptime!((first + i) * bits);
                    let (word, shift) = comptime!((row_index * bits + at / 32, (at % 32) as u32));
                    let mut code = words[word] >> shift;
                    if comptime!(shift + bits as u32 > 32) {
                        code |= words[comptime!(word + 1)] << comptime!(32 - shift);
                    }
                    let weight = decode_fast(code & comptime!(u32::MAX >> (32 - bits as u32)), form.weight.element);
                    #[unroll]
                    for input_index in 0..input_rows {
                        let sum = comptime!(row_index * input_rows + input_index);
                        partial[sum] = fma(weight, input_values[comptime!(input_index * width + i)], partial[sum]);
                    }
                }
            }
        }
        #[unroll]
        for row_index in 0..rows {
            let row = min(first_row + row_index, outputs - 1);
            let group = scale_index(row, block, part, BLOCK, form.weight);
            let mut scale = 1.0f32.runtime();
            if comptime!(!form.weight.scales_in_epilogue()) {
                scale = decode_packed(scales, group, form.weight.scale);
            }
            #[unroll]
            for input_index in 0..input_rows {
                let sum = comptime!(row_index * input_rows + input_index);
                let scaled = match comptime!(form.weight.zero) {
                    DequantMode::ZeroBeforeScale(element) => {
                        let zero = decode_packed(zeros, group, element);
                        (partial[sum] - zero * input_sums[input_index]) * scale
                    }
                    DequantMode::ZeroAfterScale(element) => {
                        let zero = decode_packed(zeros, group, element);
                        let midpoint = comptime!((1u32 << (bits - 1)) as f32);
                        (partial[sum] - midpoint * input_sums[input_index]) * scale + zero * input_sums[input_index]
                    }
                    _ => partial[sum] * scale,
                };
                sums[sum] += scaled;
            }
        }
    }
}
