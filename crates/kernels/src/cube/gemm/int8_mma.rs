//! Int8 GEMM Y = X Wᵀ on matrix instructions (m16n8k32), with the scales of both operands in the epilogue. X is
//! `[inputs, k]`, W is `[outputs, k]`, both row-major int8 in 32-bit words. CubeCL's units, planes and cubes are CUDA's
//! threads, warps and blocks.
//!
//! Data flow: a plane computes a tile of `16 * form.n_tiles` columns and `8 * form.m_tiles` rows of Y. In a chunk of 64
//! values along k, unit `4 g + t` loads 16 consecutive values of row g of each eight rows. k is permuted identically in
//! both operands, so the words go straight into mma fragments. Accumulators are integers; planes that split k reduce
//! theirs in shared memory. Each accumulator is multiplied by its input scale, then by its weight scale, and rounded
//! after each.
//!
//! Traffic: W once for each `8 * form.m_tiles * form.m_planes` rows of X; X once for each `16 * form.n_tiles *
//! form.n_planes` columns of Y, from cache after the first time. Roofline: memory bandwidth for W with few rows of X,
//! matrix instructions with many.

use super::mma_config::LANES_PER_ROW;
use super::mma_tiles::{reduce_planes, zero_tiles};
use super::spec::{Int8Formats, grid, int8_formats};
use super::tiled_int8::scale_int8_sum;
use crate::cube::capability::{INT8_MMA, PLANE_SIZE};
use crate::cube::decode::decode_packed;
use crate::cube::layer::{PlanResult, buffer_arg};
use crate::cube::matrix::storage;
use crate::cube::{Cube, CubeCapability, CubeContext, CubeError, CubeLayerPlan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::{Element, LayerSpec};
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Int8 GEMM on matrix instructions.
pub(crate) struct Int8MmaGemm;

impl<R: Runtime> LayerKernel<Cube<R>> for Int8MmaGemm {
    fn name(&self) -> &'static str {
        "int8_mma_gemm"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, capability: &CubeCapability) -> Result<Cost, Rejection> {
        int8_formats(spec)?;
        if capability.int8_mma { Ok(Cost::Fastest) } else { Err(Rejection::Device("matrix instructions on int8")) }
    }

    fn prepare(&self, context: &CubeContext<R>, spec: &LayerSpec, shape: LinearShape) -> PlanResult {
        if !context.aligned_input {
            return Err(CubeError::Misaligned { operand: "x" });
        }
        let (LinearShape { m, k, n }, dtype) = (shape, spec.dtype);
        let Int8Formats { weight, steps } = int8_formats(spec)?;
        let form = Int8GemmConfig::new(m, weight.words_per_row(k), weight.scale);
        Ok(CubeLayerPlan::new(context, spec, shape, move |client, operands| {
            // SAFETY: the kernel checks rows against their number, and the operands have the sizes of the layer.
            unsafe {
                int8_mma_gemm::launch_unchecked(
                    client,
                    grid(n.div_ceil(form.n_per_cube()), m.div_ceil(form.m_per_cube())),
                    CubeDim::new_3d(PLANE_SIZE as u32, form.k_planes as u32, (form.n_planes * form.m_planes) as u32),
                    WORDS_PER_PIECE,
                    buffer_arg(operands.x, 4 * WORDS_PER_PIECE),
                    buffer_arg(operands.weight.codes, 4 * WORDS_PER_PIECE),
                    operands.x_scales(),
                    operands.scales(),
                    buffer_arg::<R>(operands.y, dtype.width()),
                    m,
                    n,
                    form,
                    [storage(steps), storage(dtype)],
                );
            }
        }))
    }
}

/// Words of a row that a unit loads at once (a piece).
const WORDS_PER_PIECE: usize = 4;

/// Compile-time parameters of the GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Int8GemmConfig {
    /// Words per row of either operand.
    words_per_row: usize,
    /// Element type of the weight scales.
    scale: Element,
    /// Planes of a cube that split k.
    k_planes: usize,
    /// Planes of a cube along n (weight rows).
    n_planes: usize,
    /// Planes of a cube along m (input rows).
    m_planes: usize,
    /// Instruction tiles of a plane along n, 16 weight rows each.
    n_tiles: usize,
    /// Instruction tiles of a plane along m, 8 input rows each.
    m_tiles: usize,
    /// Chunks that a unit loads before it computes.
    chunks_in_flight: usize,
}

impl Int8GemmConfig {
    fn new(rows: usize, words_per_row: usize, scale: Element) -> Self {
        let tiles = rows.div_ceil(INT8_MMA.n);
        // With few input rows many planes split k to load the weight; with many rows cubes are large.
        let (k_planes, n_planes, m_planes, n_tiles, chunks_in_flight) = match tiles {
            1 => (8, 1, 1, 1, 4),
            2..=8 => (8, 2, 1, 1, 2),
            // Few output tiles per multiprocessor: more planes per cube with fewer tiles each.
            9..=128 => (1, 2, 4, 4, 1),
            _ => (1, 2, 2, 4, 1),
        };
        let m_tiles = if (9..=128).contains(&tiles) { 4 } else { tiles.min(8) };
        let mut form = Self { words_per_row, scale, k_planes, n_planes, m_planes, n_tiles, m_tiles, chunks_in_flight };
        while form.k_planes > 1 && form.chunks() < 2 * form.k_planes {
            form.k_planes /= 2;
        }
        form.chunks_in_flight = form.chunks_in_flight.min(form.chunks().div_ceil(form.k_planes));
        form
    }

    /// Weight rows per cube.
    fn n_per_cube(&self) -> usize {
        INT8_MMA.m * self.n_tiles * self.n_planes
    }

    /// Input rows per cube.
    fn m_per_cube(&self) -> usize {
        INT8_MMA.n * self.m_tiles * self.m_planes
    }

    fn pieces(&self) -> usize {
        self.words_per_row / WORDS_PER_PIECE
    }

    /// Chunks per row; a chunk is one piece for each of [`LANES_PER_ROW`] units.
    fn chunks(&self) -> usize {
        self.pieces().div_ceil(LANES_PER_ROW)
    }

    fn iterations(&self) -> usize {
        self.chunks().div_ceil(self.k_planes * self.chunks_in_flight)
    }

    /// True if no unit reads beyond the end of a row.
    fn has_no_tail(&self) -> bool {
        self.pieces() == self.iterations() * self.k_planes * self.chunks_in_flight * LANES_PER_ROW
    }
}

/// Computes y = x wᵀ with row scales of both operands; accumulators and scales are rounded to S at every step.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn int8_mma_gemm<S: Float, Y: Float, W: Size>(
    input: &Array<Vector<u32, W>>,
    codes: &Array<Vector<u32, W>>,
    input_scales: &Array<f32>,
    scales: &Array<u32>,
    y: &mut Array<Y>,
    inputs: usize,
    outputs: usize,
    #[comptime] form: Int8GemmConfig,
    #[define(S, Y)] _dtypes: [StorageType; 2],
) {
    let (lane, plane, team) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / LANES_PER_ROW, lane % LANES_PER_ROW);
    let block = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize;
    let n_plane = team % comptime!(form.n_planes);
    let first_row = block * comptime!(form.n_per_cube()) + n_plane * comptime!(INT8_MMA.m * form.n_tiles);
    let first_input = CUBE_POS_Z as usize * comptime!(form.m_per_cube())
        + team / comptime!(form.n_planes) * comptime!(INT8_MMA.n * form.m_tiles);
    let rows = comptime!(2 * form.n_tiles);

    let mut sums = zero_tiles::<i32>(comptime!(form.n_tiles * form.m_tiles));
    // Rows beyond the last one repeat it; their results are not stored.
    let mut weight_rows = Array::<usize>::new(rows);
    #[unroll]
    for index in 0..rows {
        weight_rows[index] = min(first_row + comptime!(8 * index) + g, outputs - 1) * comptime!(form.pieces());
    }
    let mut input_rows = Array::<usize>::new(form.m_tiles);
    #[unroll]
    for index in 0..comptime!(form.m_tiles) {
        input_rows[index] = min(first_input + comptime!(8 * index) + g, inputs - 1) * comptime!(form.pieces());
    }

    for iteration in 0..comptime!(form.iterations()) {
        let mut left = Array::<u32>::new(comptime!(form.chunks_in_flight * rows * WORDS_PER_PIECE));
        let mut right = Array::<u32>::new(comptime!(form.chunks_in_flight * form.m_tiles * WORDS_PER_PIECE));
        #[unroll]
        for chunk in 0..comptime!(form.chunks_in_flight) {
            let unclamped = (plane + (iteration * comptime!(form.chunks_in_flight) + chunk) * comptime!(form.k_planes))
                * LANES_PER_ROW
                + t;
            let mut piece = unclamped;
            if comptime!(!form.has_no_tail()) {
                piece = min(unclamped, comptime!(form.pieces() - 1));
            }
            #[unroll]
            for index in 0..rows {
                load_piece::<W>(codes, &mut left, weight_rows[index] + piece, comptime!(chunk * rows + index));
            }
            #[unroll]
            for index in 0..comptime!(form.m_tiles) {
                let at = comptime!(chunk * form.m_tiles + index);
                load_piece::<W>(input, &mut right, input_rows[index] + piece, at);
                // Pieces beyond the end of a row must contribute zero.
                if comptime!(!form.has_no_tail()) {
                    if unclamped >= comptime!(form.pieces()) {
                        #[unroll]
                        for i in 0..WORDS_PER_PIECE {
                            right[comptime!(at * WORDS_PER_PIECE + i)] = 0u32;
                        }
                    }
                }
            }
        }
        #[unroll]
        for chunk in 0..comptime!(form.chunks_in_flight) {
            #[unroll]
            for step in 0..2usize {
                #[unroll]
                for index in 0..comptime!(form.n_tiles) {
                    let mut a_fragment = Array::<Vector<i8, Const<4>>>::new(4usize);
                    #[unroll]
                    for i in 0..4usize {
                        let word = comptime!((chunk * rows + 2 * index + i % 2) * WORDS_PER_PIECE + 2 * step + i / 2);
                        a_fragment[i] = Vector::<i8, Const<4>>::reinterpret(left[word]);
                    }
                    #[unroll]
                    for tile in 0..comptime!(form.m_tiles) {
                        let mut b_fragment = Array::<Vector<i8, Const<4>>>::new(2usize);
                        #[unroll]
                        for i in 0..2usize {
                            let word = comptime!((chunk * form.m_tiles + tile) * WORDS_PER_PIECE + 2 * step + i);
                            b_fragment[i] = Vector::<i8, Const<4>>::reinterpret(right[word]);
                        }
                        let def = MmaDefinition::<i8, i8, i32>::new(16usize, 8usize, 32usize);
                        def.execute_inplace(
                            &a_fragment,
                            &b_fragment,
                            sums.index_mut(comptime!(index * form.m_tiles + tile)),
                        );
                    }
                }
            }
        }
    }

    if comptime!(form.k_planes > 1) {
        reduce_planes::<i32>(
            &mut sums,
            comptime!(form.n_tiles * form.m_tiles),
            form.k_planes,
            comptime!(form.n_planes * form.m_planes),
        );
    }
    if plane == 0 {
        #[unroll]
        for tile in 0..comptime!(form.m_tiles) {
            #[unroll]
            for i in 0..2usize {
                let input_row = first_input + comptime!(8 * tile + i) + 2 * t;
                if input_row < inputs {
                    let row_scale = input_scales[input_row];
                    #[unroll]
                    for half in 0..rows {
                        let row = first_row + comptime!(8 * half) + g;
                        if row < outputs {
                            let col_scale = decode_packed(scales, row, form.scale);
                            let sum = sums.index(comptime!(half / 2 * form.m_tiles + tile))[comptime!(half % 2)][i];
                            y[input_row * outputs + row] = Y::cast_from(scale_int8_sum::<S>(sum, row_scale, col_scale));
                        }
                    }
                }
            }
        }
    }
}

#[cube]
fn load_piece<W: Size>(from: &Array<Vector<u32, W>>, to: &mut Array<u32>, piece: usize, #[comptime] at: usize) {
    let read = from[piece];
    #[unroll]
    for i in 0..WORDS_PER_PIECE {
        to[comptime!(at * WORDS_PER_PIECE + i)] = read[i];
    }
}
