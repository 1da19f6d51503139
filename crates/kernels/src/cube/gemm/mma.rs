//! Dequantizing GEMM Y = X Wᵀ on matrix instructions (m16n8k16); weights are dequantized in registers. X is `[inputs,
//! k]` in f16 or bf16, W is `[outputs, k]` in packed words. CubeCL's units, planes and cubes are CUDA's threads, warps
//! and blocks.
//!
//! Data flow: a plane computes a tile of `16 * form.n_tiles` columns and `8 * form.m_tiles` rows of Y, over every
//! `form.k_planes`-th chunk of k. In a chunk, unit `4 g + t` loads a piece, 16 or 32 consecutive values, of rows g and
//! g + 8 of each sixteen weight rows, with `form.chunks_in_flight` chunks in flight, and the matching input values,
//! which all cubes but the first find in cache. The piece is dequantized to pairs of the input dtype and goes straight
//! into mma fragments: k is permuted identically in both operands. Planes that split k reduce their accumulators in
//! shared memory; cubes that split k (`form.k_splits`) write partial sums that another kernel reduces. The order of
//! additions is fixed.
//!
//! Traffic: W once for each `8 * form.m_tiles` rows of X, X once per cube. Roofline: memory bandwidth for W with few
//! rows of X, as long as dequantization keeps up: 2 instructions per 8-bit value, 4 to 6 with group scales. Matrix
//! instructions with many rows.

use super::mma_config::{LANES_PER_ROW, MmaGemmConfig, VALUES_PER_ACCESS, mma_format};
use super::mma_dequant::{dequant_piece, input_pair};
use super::mma_tiles::{clamped_rows, load_words, multiply_step, reduce_planes, store_tiles, zero_tiles};
use super::spec::dequantized_format;
use super::split_k::launch;
use crate::LayerSpec;
use crate::cube::capability::FLOAT_MMA;
use crate::cube::layer::{PlanResult, buffer_arg};
use crate::cube::{Cube, CubeCapability, CubeContext, CubeLayerPlan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use cubecl::prelude::*;

/// Dequantizing GEMM on matrix instructions.
pub(crate) struct MmaGemm;

impl<R: Runtime> LayerKernel<Cube<R>> for MmaGemm {
    fn name(&self) -> &'static str {
        "mma_gemm"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, capability: &CubeCapability) -> Result<Cost, Rejection> {
        mma_format(spec, capability)?;
        Ok(Cost::Fastest)
    }

    fn prepare(&self, context: &CubeContext<R>, spec: &LayerSpec, shape: LinearShape) -> PlanResult {
        let LinearShape { m, n, .. } = shape;
        let form = config(context, MmaGemmConfig::new(spec.dtype, dequantized_format(spec)?, shape), shape);
        Ok(CubeLayerPlan::new(context, spec, shape, move |client, operands| {
            launch(client, operands, shape, form, |count, dim, y, dtypes| {
                // SAFETY: the kernel checks rows against their number, and the operands have the sizes of the layer.
                unsafe {
                    mma_gemm::launch_unchecked::<R>(
                        client,
                        count,
                        dim,
                        form.input_width,
                        form.word_width,
                        buffer_arg(operands.x, form.dtype.width() * form.input_width),
                        buffer_arg(operands.weight.codes, 4 * form.word_width),
                        operands.scales(),
                        operands.zeros(),
                        y,
                        m,
                        n,
                        form.magic_bits(),
                        form,
                        dtypes,
                    );
                }
            });
        }))
    }
}

/// Selects the tile configuration, which was tuned on an H200.
fn config<R: Runtime>(context: &CubeContext<R>, mut form: MmaGemmConfig, shape: LinearShape) -> MmaGemmConfig {
    let tiles = shape.m.div_ceil(FLOAT_MMA.n);
    // Unaligned rows and unaligned inputs are read value by value.
    let is_vectorized = context.aligned_input && shape.k.is_multiple_of(VALUES_PER_ACCESS);
    form.input_width = if is_vectorized { VALUES_PER_ACCESS } else { 1 };
    // With few input rows many planes split k to load the weight. With more rows every cube reads the whole input, so
    // cubes must be larger.
    let max_in_flight;
    (form.k_planes, form.n_planes, form.m_planes, form.n_tiles, max_in_flight) = match tiles {
        1 => (16, 1, 1, 1, 2),
        2..=4 => (8, 1, 1, 1, 4),
        5..=8 => (8, 2, 1, 1, 2),
        _ => (1, 4, 2, 2, 1),
    };
    form.chunks_in_flight = 1;
    if !is_vectorized {
        // Each value is a branch; with many of them CubeCL's compiler overflows its stack.
        (form.n_tiles, form.m_tiles) = (1, tiles.min(2));
    }
    let chunks = form.chunks();
    // At least two chunks per plane, or the reduction costs more than it saves.
    while form.k_planes > 1 && chunks < 2 * form.k_planes {
        form.k_planes /= 2;
    }
    form.configure_device(&context.client, shape, 1);
    let max_in_flight = if is_vectorized { max_in_flight } else { 1 };
    form.chunks_in_flight = chunks.div_ceil(form.k_planes * form.k_splits).min(max_in_flight);
    form
}

/// Computes y = x wᵀ, or partial sums of it with `form.k_splits`.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn mma_gemm<F: Float, Y: Float, X: Size, W: Size>(
    input: &Array<Vector<F, X>>,
    codes: &Array<Vector<u32, W>>,
    scales: &Array<u32>,
    zeros: &Array<u32>,
    y: &mut Array<Y>,
    inputs: usize,
    outputs: usize,
    power: u32,
    #[comptime] form: MmaGemmConfig,
    #[define(F, Y)] _dtypes: [StorageType; 2],
) {
    let (lane, plane, team) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / LANES_PER_ROW, lane % LANES_PER_ROW);
    let split = CUBE_POS_X as usize % comptime!(form.k_splits);
    let block = CUBE_POS_Y as usize * (CUBE_COUNT_X as usize / comptime!(form.k_splits))
        + CUBE_POS_X as usize / comptime!(form.k_splits);
    let first_row =
        block * comptime!(form.n_per_cube()) + team % comptime!(form.n_planes) * comptime!(FLOAT_MMA.m * form.n_tiles);
    let first_input = CUBE_POS_Z as usize * comptime!(form.m_per_cube())
        + team / comptime!(form.n_planes) * comptime!(FLOAT_MMA.n * form.m_tiles);
    let (rows, words, pairs) = comptime!((2 * form.n_tiles, form.words_per_piece(), form.pairs_per_piece()));

    let mut sums = zero_tiles::<f32>(comptime!(form.n_tiles * form.m_tiles));
    let weight_rows = clamped_rows(first_row, g, outputs, rows);
    let first_chunk = split * comptime!(form.k_planes) + plane;
    for iteration in 0..comptime!(form.iterations()) {
        // All loads precede their use. Pieces beyond the end of a row are multiplied by zeros of the input.
        let mut loaded = Array::<u32>::new(comptime!(form.chunks_in_flight * rows * words));
        #[unroll]
        for chunk in 0..comptime!(form.chunks_in_flight) {
            let piece = clamped_piece(first_chunk, iteration, chunk, t, form);
            #[unroll]
            for row_index in 0..rows {
                let slot = comptime!(chunk * rows + row_index);
                load_words::<W>(codes, &mut loaded, weight_rows[row_index], piece, slot, form);
            }
        }
        #[unroll]
        for chunk in 0..comptime!(form.chunks_in_flight) {
            let piece = clamped_piece(first_chunk, iteration, chunk, t, form);
            let mut weight_pairs = Array::<Vector<F, Const<2>>>::new(comptime!(rows * pairs));
            #[unroll]
            for row_index in 0..rows {
                dequant_piece::<F>(
                    &loaded,
                    scales,
                    zeros,
                    &mut weight_pairs,
                    weight_rows[row_index],
                    piece,
                    power,
                    chunk,
                    row_index,
                    form,
                );
            }
            let first_col = piece_index(first_chunk, iteration, chunk, t, form) * comptime!(form.piece_len());
            #[unroll]
            for tile in 0..comptime!(form.m_tiles) {
                let row = min(first_input + comptime!(8 * tile) + g, inputs - 1);
                let input_pairs = load_input_piece::<F, X>(input, row, first_col, form);
                #[unroll]
                for step in 0..comptime!(pairs / 2) {
                    let mut b_fragment = Array::<Vector<F, Const<2>>>::new(2usize);
                    b_fragment[0] = input_pair::<F>(&input_pairs, comptime!(2 * step), form);
                    b_fragment[1] = input_pair::<F>(&input_pairs, comptime!(2 * step + 1), form);
                    multiply_step::<F>(&weight_pairs, &b_fragment, &mut sums, pairs, step, tile, form);
                }
            }
        }
    }

    if comptime!(form.k_planes > 1) {
        reduce_planes::<f32>(
            &mut sums,
            comptime!(form.n_tiles * form.m_tiles),
            form.k_planes,
            comptime!(form.n_planes * form.m_planes),
        );
    }
    if plane == 0 {
        store_tiles::<Y>(&sums, scales, y, first_row, first_input, split, inputs, outputs, form);
    }
}

/// Index of the piece of a unit; may lie beyond the end of a row.
#[cube]
fn piece_index(
    first: usize,
    iteration: usize,
    #[comptime] chunk: usize,
    t: usize,
    #[comptime] form: MmaGemmConfig,
) -> usize {
    let stride = comptime!(form.k_planes * form.k_splits);
    (first + iteration * comptime!(stride * form.chunks_in_flight) + comptime!(chunk * stride)) * LANES_PER_ROW + t
}

/// Index of the piece that a unit loads.
#[cube]
fn clamped_piece(
    first: usize,
    iteration: usize,
    #[comptime] chunk: usize,
    t: usize,
    #[comptime] form: MmaGemmConfig,
) -> usize {
    let piece = piece_index(first, iteration, chunk, t, form);
    if comptime!(form.has_no_tail()) { piece } else { min(piece, comptime!(form.pieces() - 1)) }
}

/// Loads the input values that are multiplied with a piece, two per word; zero beyond the end of a row.
#[cube]
fn load_input_piece<F: Float, X: Size>(
    input: &Array<Vector<F, X>>,
    row: usize,
    first: usize,
    #[comptime] form: MmaGemmConfig,
) -> Array<u32> {
    let mut words = Array::<u32>::new(comptime!(form.pairs_per_piece()));
    if comptime!(form.input_width == 8) {
        #[unroll]
        for access in 0..comptime!(form.piece_len() / 8) {
            let col = first + comptime!(8 * access);
            let mut loaded = Vector::<F, X>::new(F::new(0.0));
            if comptime!(form.has_no_tail()) {
                loaded = input[(row * comptime!(form.weight.cols) + col) / 8];
            } else if col < comptime!(form.weight.cols) {
                loaded = input[(row * comptime!(form.weight.cols) + col) / 8];
            }
            let vector = Vector::<u32, Const<4>>::reinterpret(loaded);
            #[unroll]
            for i in 0..4usize {
                words[comptime!(4 * access + i)] = vector[i];
            }
        }
    } else {
        #[unroll]
        for pair in 0..comptime!(form.pairs_per_piece()) {
            let mut values = Vector::<F, Const<2>>::new(F::new(0.0));
            #[unroll]
            for i in 0..2usize {
                let col = first + comptime!(2 * pair + i);
                if col < comptime!(form.weight.cols) {
                    values[i] = input[row * comptime!(form.weight.cols) + col][0];
                }
            }
            words[pair] = u32::reinterpret(values);
        }
    }
    words
}
