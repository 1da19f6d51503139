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

use super::kernels::{decode, unpack};
use super::matrix_kernel::add_planes;
use super::tile_kernel::scaled_code_sum;
use crate::Element;
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Weight rows, input rows and values along k of a matrix instruction.
pub const INSTRUCTION: (usize, usize, usize) = (16, 8, 32);

/// Units that share a row of a chunk, and words that each of them loads.
const ABREAST: usize = 4;
const WORDS: usize = 4;

/// Compile-time parameters of the GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeForm {
    /// Words per row of either operand.
    pub words_per_row: usize,
    /// Element type of the weight scales.
    pub scale: Element,
    /// Planes of a cube that split k.
    pub planes: usize,
    /// Planes of a cube along n (weight rows).
    pub beside: usize,
    /// Planes of a cube along m (input rows).
    pub across: usize,
    /// Instruction tiles of a plane along n, 16 weight rows each.
    pub rows: usize,
    /// Instruction tiles of a plane along m, 8 input rows each.
    pub inputs: usize,
    /// Chunks that a unit loads before it computes.
    pub flight: usize,
}

impl CodeForm {
    /// Weight rows per cube.
    pub fn rows_of_cube(&self) -> usize {
        INSTRUCTION.0 * self.rows * self.beside
    }

    /// Input rows per cube.
    pub fn inputs_of_cube(&self) -> usize {
        INSTRUCTION.1 * self.inputs * self.across
    }

    fn pieces(&self) -> usize {
        self.words_per_row / WORDS
    }

    /// Chunks per row; a chunk is one piece for each of [`ABREAST`] units.
    pub fn chunks(&self) -> usize {
        self.pieces().div_ceil(ABREAST)
    }

    fn turns(&self) -> usize {
        self.chunks().div_ceil(self.planes * self.flight)
    }

    /// True if no unit reads beyond the end of a row.
    fn whole(&self) -> bool {
        self.pieces() == self.turns() * self.planes * self.flight * ABREAST
    }
}

/// Computes y = x wᵀ with row scales of both operands; accumulators and scales are rounded to S at every step.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn code_product<S: Float, Y: Float, W: Size>(
    input: &Array<Vector<u32, W>>,
    codes: &Array<Vector<u32, W>>,
    input_scales: &Array<f32>,
    scales: &Array<u32>,
    y: &mut Array<Y>,
    inputs: usize,
    outputs: usize,
    #[comptime] form: CodeForm,
    #[define(S, Y)] _dtypes: [StorageType; 2],
) {
    let (lane, plane, team) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / ABREAST, lane % ABREAST);
    let block = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize;
    let n_plane = team % comptime!(form.beside);
    let first_row = block * comptime!(form.rows_of_cube()) + n_plane * comptime!(INSTRUCTION.0 * form.rows);
    let first_input = CUBE_POS_Z as usize * comptime!(form.inputs_of_cube())
        + team / comptime!(form.beside) * comptime!(INSTRUCTION.1 * form.inputs);
    let rows = comptime!(2 * form.rows);

    let mut sums = Sequence::<Array<Vector<i32, Const<2>>>>::new();
    #[unroll]
    for _ in 0..comptime!(form.rows * form.inputs) {
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
    let mut input_rows = Array::<usize>::new(form.inputs);
    #[unroll]
    for index in 0..comptime!(form.inputs) {
        input_rows[index] = min(first_input + comptime!(8 * index) + g, inputs - 1) * comptime!(form.pieces());
    }

    for iteration in 0..comptime!(form.turns()) {
        let mut left = Array::<u32>::new(comptime!(form.flight * rows * WORDS));
        let mut right = Array::<u32>::new(comptime!(form.flight * form.inputs * WORDS));
        #[unroll]
        for chunk in 0..comptime!(form.flight) {
            let unclamped =
                (plane + (iteration * comptime!(form.flight) + chunk) * comptime!(form.planes)) * ABREAST + t;
            let mut piece = unclamped;
            if comptime!(!form.whole()) {
                piece = min(unclamped, comptime!(form.pieces() - 1));
            }
            #[unroll]
            for index in 0..rows {
                read_piece::<W>(codes, &mut left, weight_rows[index] + piece, comptime!(chunk * rows + index));
            }
            #[unroll]
            for index in 0..comptime!(form.inputs) {
                let at = comptime!(chunk * form.inputs + index);
                read_piece::<W>(input, &mut right, input_rows[index] + piece, at);
                // Pieces beyond the end of a row must contribute zero.
                if comptime!(!form.whole()) {
                    if unclamped >= comptime!(form.pieces()) {
                        #[unroll]
                        for i in 0..WORDS {
                            right[comptime!(at * WORDS + i)] = 0u32;
                        }
                    }
                }
            }
        }
        #[unroll]
        for chunk in 0..comptime!(form.flight) {
            #[unroll]
            for step in 0..2usize {
                #[unroll]
                for index in 0..comptime!(form.rows) {
                    let mut a_fragment = Array::<Vector<i8, Const<4>>>::new(4usize);
                    #[unroll]
                    for i in 0..4usize {
                        let word = comptime!((chunk * rows + 2 * index + i % 2) * WORDS + 2 * step + i / 2);
                        a_fragment[i] = Vector::<i8, Const<4>>::reinterpret(left[word]);
                    }
                    #[unroll]
                    for tile in 0..comptime!(form.inputs) {
                        let mut b_fragment = Array::<Vector<i8, Const<4>>>::new(2usize);
                        #[unroll]
                        for i in 0..2usize {
                            let word = comptime!((chunk * form.inputs + tile) * WORDS + 2 * step + i);
                            b_fragment[i] = Vector::<i8, Const<4>>::reinterpret(right[word]);
                        }
                        let def = MmaDefinition::<i8, i8, i32>::new(16usize, 8usize, 32usize);
                        def.execute_inplace(
                            &a_fragment,
                            &b_fragment,
                            sums.index_mut(comptime!(index * form.inputs + tile)),
                        );
                    }
                }
            }
        }
    }

    if comptime!(form.planes > 1) {
        add_planes::<i32>(
            &mut sums,
            comptime!(form.rows * form.inputs),
            form.planes,
            comptime!(form.beside * form.across),
        );
    }
    if plane == 0 {
        #[unroll]
        for tile in 0..comptime!(form.inputs) {
            #[unroll]
            for i in 0..2usize {
                let input_row = first_input + comptime!(8 * tile + i) + 2 * t;
                if input_row < inputs {
                    let row_scale = input_scales[input_row];
                    #[unroll]
                    for half in 0..rows {
                        let row = first_row + comptime!(8 * half) + g;
                        if row < outputs {
                            let col_scale = unpack(scales, 0, row, comptime!(form.scale.bits()));
                            let col_scale = decode(col_scale, comptime!(form.scale));
                            let sum = sums.index(comptime!(half / 2 * form.inputs + tile))[comptime!(half % 2)][i];
                            y[input_row * outputs + row] =
                                Y::cast_from(scaled_code_sum::<S>(sum, row_scale, col_scale));
                        }
                    }
                }
            }
        }
    }
}

#[cube]
fn read_piece<W: Size>(from: &Array<Vector<u32, W>>, to: &mut Array<u32>, piece: usize, #[comptime] at: usize) {
    let read = from[piece];
    #[unroll]
    for i in 0..WORDS {
        to[comptime!(at * WORDS + i)] = read[i];
    }
}
