//! Accumulators and fragments of GEMMs on matrix instructions. Unit `4 g + t` of a plane holds rows g and g + 8 of each
//! tile of 16 weight rows, and accumulates their products with the input rows 2 t and 2 t + 1 of each tile of eight
//! (PTX ISA, fragments of m16n8k16 and m16n8k32).

use super::mma_config::{LANES_PER_ROW, MmaGemmConfig};
use crate::cube::capability::PLANE_SIZE;
use crate::cube::decode::decode_packed;
use cubecl::cmma::MmaDefinition;
use cubecl::prelude::*;

/// Accumulators of `count` instruction tiles, set to zero.
#[cube]
pub(super) fn zero_tiles<A: Numeric>(#[comptime] count: usize) -> Sequence<Array<Vector<A, Const<2>>>> {
    let mut sums = Sequence::<Array<Vector<A, Const<2>>>>::new();
    #[unroll]
    for _ in 0..count {
        let mut tile_sums = Array::<Vector<A, Const<2>>>::new(2usize);
        tile_sums[0] = Vector::new(A::from_int(0));
        tile_sums[1] = Vector::new(A::from_int(0));
        sums.push(tile_sums);
    }
    sums
}

/// Weight rows of a unit. Rows beyond the last one repeat it; their results are not stored.
#[cube]
pub(super) fn clamped_rows(first_row: usize, g: usize, outputs: usize, #[comptime] rows: usize) -> Array<usize> {
    let mut weight_rows = Array::<usize>::new(rows);
    #[unroll]
    for row_index in 0..rows {
        weight_rows[row_index] = min(first_row + comptime!(8 * row_index) + g, outputs - 1);
    }
    weight_rows
}

/// Starts loading the words of a piece of a row; `slot` counts the pieces in `loaded`.
#[cube]
pub(super) fn load_words<W: Size>(
    codes: &Array<Vector<u32, W>>,
    loaded: &mut Array<u32>,
    row: usize,
    piece: usize,
    #[comptime] slot: usize,
    #[comptime] form: MmaGemmConfig,
) {
    let words = comptime!(form.words_per_piece());
    let from = (row * comptime!(form.weight.words_per_row) + piece * words) / comptime!(form.word_width);
    #[unroll]
    for access in 0..comptime!(words / form.word_width) {
        let vector = codes[from + access];
        #[unroll]
        for i in 0..comptime!(form.word_width) {
            loaded[comptime!(slot * words + access * form.word_width + i)] = vector[i];
        }
    }
}

/// Multiplies the weight pairs of all rows of a unit, from pair `2 * step` of each row on, by a fragment of the input.
#[cube]
pub(super) fn multiply_step<F: Float>(
    weight_pairs: &Array<Vector<F, Const<2>>>,
    b_fragment: &Array<Vector<F, Const<2>>>,
    sums: &mut Sequence<Array<Vector<f32, Const<2>>>>,
    #[comptime] pairs_per_row: usize,
    #[comptime] step: usize,
    #[comptime] tile: usize,
    #[comptime] form: MmaGemmConfig,
) {
    #[unroll]
    for row_index in 0..comptime!(form.n_tiles) {
        let mut a_fragment = Array::<Vector<F, Const<2>>>::new(4usize);
        #[unroll]
        for i in 0..4usize {
            a_fragment[i] = weight_pairs[comptime!((2 * row_index + i % 2) * pairs_per_row + 2 * step + i / 2)];
        }
        let def = MmaDefinition::<F, F, f32>::new(16usize, 8usize, 16usize);
        def.execute_inplace(&a_fragment, b_fragment, sums.index_mut(comptime!(row_index * form.m_tiles + tile)));
    }
}

/// Tree reduction over `planes` planes that split k, into the accumulators of the first plane; a cube holds `teams`
/// groups of such planes.
#[cube]
pub(super) fn reduce_planes<A: Numeric>(
    sums: &mut Sequence<Array<Vector<A, Const<2>>>>,
    #[comptime] tiles: usize,
    #[comptime] planes: usize,
    #[comptime] teams: usize,
) {
    let (lane, plane, team) = (UNIT_POS_X as usize, UNIT_POS_Y as usize, UNIT_POS_Z as usize);
    let values_per_plane = comptime!(4 * tiles * PLANE_SIZE);
    let mut shared = SharedMemory::<A>::new(comptime!(planes / 2 * teams * values_per_plane));
    #[unroll]
    for level in 0..comptime!(planes.ilog2()) {
        let width = comptime!(planes >> (level + 1));
        let slot = ((plane % width) * teams + team) * values_per_plane + lane;
        if plane >= width && plane < comptime!(2 * width) {
            #[unroll]
            for tile in 0..tiles {
                #[unroll]
                for i in 0..4usize {
                    shared[slot + comptime!((4 * tile + i) * PLANE_SIZE)] =
                        sums.index(tile)[comptime!(i / 2)][comptime!(i % 2)];
                }
            }
        }
        sync_cube();
        if plane < width {
            #[unroll]
            for tile in 0..tiles {
                let tile_sums = sums.index_mut(tile);
                #[unroll]
                for half in 0..2usize {
                    let mut partner = Vector::<A, Const<2>>::empty();
                    partner[0] = shared[slot + comptime!((4 * tile + 2 * half) * PLANE_SIZE)];
                    partner[1] = shared[slot + comptime!((4 * tile + 2 * half + 1) * PLANE_SIZE)];
                    tile_sums[half] = tile_sums[half] + partner;
                }
            }
        }
        sync_cube();
    }
}

/// Stores the accumulators of a plane, with the scales of the epilogue.
#[cube]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
pub(super) fn store_tiles<Y: Float>(
    sums: &Sequence<Array<Vector<f32, Const<2>>>>,
    scales: &Array<u32>,
    y: &mut Array<Y>,
    first_row: usize,
    first_input: usize,
    split: usize,
    inputs: usize,
    outputs: usize,
    #[comptime] form: MmaGemmConfig,
) {
    let lane = UNIT_POS_X as usize;
    let (g, t) = (lane / LANES_PER_ROW, lane % LANES_PER_ROW);
    #[unroll]
    for row_tile in 0..comptime!(form.n_tiles) {
        #[unroll]
        for half in 0..2usize {
            let row = first_row + comptime!(16 * row_tile + 8 * half) + g;
            if row < outputs {
                let mut scale = 1.0f32.runtime();
                if comptime!(form.weight.scales_in_epilogue() && form.k_splits == 1) {
                    scale = decode_packed(scales, row, form.weight.scale);
                }
                #[unroll]
                for tile in 0..comptime!(form.m_tiles) {
                    #[unroll]
                    for i in 0..2usize {
                        let input_row = first_input + comptime!(8 * tile + i) + 2 * t;
                        if input_row < inputs {
                            let sum = sums.index(comptime!(row_tile * form.m_tiles + tile))[half][i];
                            y[(split * inputs + input_row) * outputs + row] = Y::cast_from(sum * scale);
                        }
                    }
                }
            }
        }
    }
}
