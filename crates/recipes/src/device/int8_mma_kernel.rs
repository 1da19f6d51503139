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

use super::mma_gemm_kernel::reduce_planes;
use super::tiled_gemm_kernel::scale_int8_sum;
use crate::Element;
use calorimeter_kernels::cube::decode::{decode, unpack_value};
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Weight rows, input rows and values along k of a matrix instruction.
pub const MMA_SHAPE: (usize, usize, usize) = (16, 8, 32);

/// Units that share a row of a chunk, and words that each of them loads.
const LANES_PER_ROW: usize = 4;
const WORDS_PER_PIECE: usize = 4;

/// Compile-time parameters of the GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Int8GemmConfig {
    /// Words per row of either operand.
    pub words_per_row: usize,
    /// Element type of the weight scales.
    pub scale: Element,
    /// Planes of a cube that split k.
    pub k_planes: usize,
    /// Planes of a cube along n (weight rows).
    pub n_planes: usize,
    /// Planes of a cube along m (input rows).
    pub m_planes: usize,
    /// Instruction tiles of a plane along n, 16 weight rows each.
    pub n_tiles: usize,
    /// Instruction tiles of a plane along m, 8 input rows each.
    pub m_tiles: usize,
    /// Chunks that a unit loads before it computes.
    pub chunks_in_flight: usize,
}

impl Int8GemmConfig {
    /// Weight rows per cube.
    pub fn n_per_cube(&self) -> usize {
        MMA_SHAPE.0 * self.n_tiles * self.n_planes
    }

    /// Input rows per cube.
    pub fn m_per_cube(&self) -> usize {
        MMA_SHAPE.1 * self.m_tiles * self.m_planes
    }

    fn pieces(&self) -> usize {
        self.words_per_row / WORDS_PER_PIECE
    }

    /// Chunks per row; a chunk is one piece for each of [`LANES_PER_ROW`] units.
    pub fn chunks(&self) -> usize {
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
pub fn int8_mma_gemm<S: Float, Y: Float, W: Size>(
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
    let first_row = block * comptime!(form.n_per_cube()) + n_plane * comptime!(MMA_SHAPE.0 * form.n_tiles);
    let first_input = CUBE_POS_Z as usize * comptime!(form.m_per_cube())
        + team / comptime!(form.n_planes) * comptime!(MMA_SHAPE.1 * form.m_tiles);
    let rows = comptime!(2 * form.n_tiles);

    let mut sums = Sequence::<Array<Vector<i32, Const<2>>>>::new();
    #[unroll]
    for _ in 0..comptime!(form.n_tiles * form.m_tiles) {
        let mut tile_sums = Array::<Vector<i32, Const<2>>>::new(2usize);
        tile_sums[0] = Vector::new(0i32);
        tile_sums[1] = Vector::new(0i32);
        sums.push(tile_sums);
    }
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
                            let col_scale = unpack_value(scales, 0, row, comptime!(form.scale.bits()));
                            let col_scale = decode(col_scale, comptime!(form.scale));
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
