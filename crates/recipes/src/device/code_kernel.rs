//! The product of two tensors of 8-bit integer codes on matrix instructions, with the scales of both in the same kernel.
//!
//! Data flow: a plane makes `16 * form.rows` columns of the output for `8 * form.inputs` rows of the input. In a chunk of 64
//! codes the unit `4 g + t` reads 16 codes beside each other of the rows g of each eight, and gives them to whatever place of
//! the instructions is its own: a sum does not depend on the order of its terms. Sums are integers; those of planes that
//! share columns meet in shared memory. Then each is multiplied with the scale of its row of the input and with that of its
//! column, and rounded after each.
//!
//! Traffic: the weight once for each `8 * form.inputs * form.across` rows of the input, the input once for each
//! `16 * form.rows * form.beside` columns, from a cache after the first time. Roofline: the bytes of the weight over the
//! memory's rate for few rows, the matrix instructions for many.

use super::kernels::{decode, unpack};
use super::matrix_kernel::add_planes;
use super::tile_kernel::scaled_code_sum;
use crate::Element;
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Rows of the weight, rows of the input and codes along them in an instruction.
pub const INSTRUCTION: (usize, usize, usize) = (16, 8, 32);

/// Units that read codes beside each other, and the words of each.
const ABREAST: usize = 4;
const WORDS: usize = 4;

/// What is known of a product when its kernel is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeForm {
    /// Words in a row of either operand.
    pub words_per_row: usize,
    /// How scales of columns are stored.
    pub scale: Element,
    /// Planes of a cube that share columns.
    pub planes: usize,
    /// Planes of a cube that have rows of the weight of their own.
    pub beside: usize,
    /// Planes of a cube that have rows of the input of their own.
    pub across: usize,
    /// Times 16 rows of the weight in a plane.
    pub rows: usize,
    /// Times 8 rows of the input in a plane.
    pub inputs: usize,
    /// Chunks that a unit waits for at once.
    pub flight: usize,
}

impl CodeForm {
    /// Rows of the weight in a cube.
    pub fn rows_of_cube(&self) -> usize {
        INSTRUCTION.0 * self.rows * self.beside
    }

    /// Rows of the input in a cube.
    pub fn inputs_of_cube(&self) -> usize {
        INSTRUCTION.1 * self.inputs * self.across
    }

    fn pieces(&self) -> usize {
        self.words_per_row / WORDS
    }

    /// Pieces that units beside each other read together.
    pub fn chunks(&self) -> usize {
        self.pieces().div_ceil(ABREAST)
    }

    fn turns(&self) -> usize {
        self.chunks().div_ceil(self.planes * self.flight)
    }

    /// Whether no unit comes to a code behind the end of a row.
    fn whole(&self) -> bool {
        self.pieces() == self.turns() * self.planes * self.flight * ABREAST
    }
}

/// y = x wᵀ of codes under the scales of their rows, which were rounded to S as every step is.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub fn code_product<S: Float, Y: Float, W: Size>(
    input: &Array<Vector<u32, W>>,
    codes: &Array<Vector<u32, W>>,
    by_input: &Array<f32>,
    scales: &Array<u32>,
    y: &mut Array<Y>,
    inputs: usize,
    outputs: usize,
    #[comptime] form: CodeForm,
    #[define(S, Y)] _dtypes: [StorageType; 2],
) {
    let (lane, plane, own) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let (g, t) = (lane / ABREAST, lane % ABREAST);
    let block = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize;
    let beside = own % comptime!(form.beside);
    let first_row = block * comptime!(form.rows_of_cube()) + beside * comptime!(INSTRUCTION.0 * form.rows);
    let first_input = CUBE_POS_Z as usize * comptime!(form.inputs_of_cube())
        + own / comptime!(form.beside) * comptime!(INSTRUCTION.1 * form.inputs);
    let rows = comptime!(2 * form.rows);

    let mut sums = Sequence::<Array<Vector<i32, Const<2>>>>::new();
    #[unroll]
    for _ in 0..comptime!(form.rows * form.inputs) {
        let mut of_tile = Array::<Vector<i32, Const<2>>>::new(2usize);
        of_tile[0] = Vector::new(0i32);
        of_tile[1] = Vector::new(0i32);
        sums.push(of_tile);
    }
    // Beyond the last row the last one is read again, and what comes of it is not written.
    let mut of_weight = Array::<usize>::new(rows);
    #[unroll]
    for of in 0..rows {
        of_weight[of] = min(first_row + comptime!(8 * of) + g, outputs - 1) * comptime!(form.pieces());
    }
    let mut of_input = Array::<usize>::new(form.inputs);
    #[unroll]
    for of in 0..comptime!(form.inputs) {
        of_input[of] = min(first_input + comptime!(8 * of) + g, inputs - 1) * comptime!(form.pieces());
    }

    for turn in 0..comptime!(form.turns()) {
        let mut left = Array::<u32>::new(comptime!(form.flight * rows * WORDS));
        let mut right = Array::<u32>::new(comptime!(form.flight * form.inputs * WORDS));
        #[unroll]
        for ahead in 0..comptime!(form.flight) {
            let sought = (plane + (turn * comptime!(form.flight) + ahead) * comptime!(form.planes)) * ABREAST + t;
            let mut piece = sought;
            if comptime!(!form.whole()) {
                piece = min(sought, comptime!(form.pieces() - 1));
            }
            #[unroll]
            for of in 0..rows {
                read_piece::<W>(codes, &mut left, of_weight[of] + piece, comptime!(ahead * rows + of));
            }
            #[unroll]
            for of in 0..comptime!(form.inputs) {
                let at = comptime!(ahead * form.inputs + of);
                read_piece::<W>(input, &mut right, of_input[of] + piece, at);
                // What is behind the end must add nothing.
                if comptime!(!form.whole()) {
                    if sought >= comptime!(form.pieces()) {
                        #[unroll]
                        for i in 0..WORDS {
                            right[comptime!(at * WORDS + i)] = 0u32;
                        }
                    }
                }
            }
        }
        #[unroll]
        for ahead in 0..comptime!(form.flight) {
            #[unroll]
            for step in 0..2usize {
                #[unroll]
                for of in 0..comptime!(form.rows) {
                    let mut of_left = Array::<Vector<i8, Const<4>>>::new(4usize);
                    #[unroll]
                    for i in 0..4usize {
                        let word = comptime!((ahead * rows + 2 * of + i % 2) * WORDS + 2 * step + i / 2);
                        of_left[i] = Vector::<i8, Const<4>>::reinterpret(left[word]);
                    }
                    #[unroll]
                    for tile in 0..comptime!(form.inputs) {
                        let mut of_right = Array::<Vector<i8, Const<4>>>::new(2usize);
                        #[unroll]
                        for i in 0..2usize {
                            let word = comptime!((ahead * form.inputs + tile) * WORDS + 2 * step + i);
                            of_right[i] = Vector::<i8, Const<4>>::reinterpret(right[word]);
                        }
                        let def = MmaDefinition::<i8, i8, i32>::new(16usize, 8usize, 32usize);
                        def.execute_inplace(&of_left, &of_right, sums.index_mut(comptime!(of * form.inputs + tile)));
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
                let at_input = first_input + comptime!(8 * tile + i) + 2 * t;
                if at_input < inputs {
                    let of_row = by_input[at_input];
                    #[unroll]
                    for half in 0..rows {
                        let row = first_row + comptime!(8 * half) + g;
                        if row < outputs {
                            let of_col = unpack(scales, 0, row, comptime!(form.scale.bits()));
                            let of_col = decode(of_col, comptime!(form.scale));
                            let sum = sums.index(comptime!(half / 2 * form.inputs + tile))[comptime!(half % 2)][i];
                            y[at_input * outputs + row] = Y::cast_from(scaled_code_sum::<S>(sum, of_row, of_col));
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
