//! Register tiles of GEMMs without matrix instructions: a cube computes a tile of [`TILE`] weight rows and [`TILE`] input
//! rows from operands in shared memory, and each of its units a tile of 4 x 4.

use super::spec::BLOCK;
use cubecl::prelude::*;

/// Weight rows and input rows of a cube.
pub(super) const TILE: usize = 64;

/// Units of a cube along each dimension, and rows of each operand per unit.
pub(super) const UNITS_PER_SIDE: usize = 16;
pub(super) const OUTPUTS_PER_SIDE: usize = TILE / UNITS_PER_SIDE;

/// Values that a unit loads per row and block; four units share a block.
pub(super) const VALUES_PER_LOAD: usize = BLOCK * TILE / (UNITS_PER_SIDE * UNITS_PER_SIDE);

/// Accumulators of a unit, set to zero.
#[cube]
pub(super) fn zero_accumulators<A: Numeric>() -> Array<A> {
    let mut sums = Array::<A>::new(comptime!(OUTPUTS_PER_SIDE * OUTPUTS_PER_SIDE));
    #[unroll]
    for at in 0..comptime!(OUTPUTS_PER_SIDE * OUTPUTS_PER_SIDE) {
        sums[at] = A::from_int(0);
    }
    sums
}

/// First weight row and first input row of a cube.
#[cube]
pub(super) fn tile_origin() -> (usize, usize) {
    ((CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize * TILE, CUBE_POS_Z as usize * TILE)
}

/// Row of the tile and part of a block that a unit loads of each operand.
#[cube]
pub(super) fn load_position() -> (usize, usize) {
    let parts = comptime!(BLOCK / VALUES_PER_LOAD);
    (UNIT_POS as usize / parts, UNIT_POS as usize % parts)
}

/// Weight row and input row of an accumulator; adjacent units write adjacent outputs.
#[cube]
pub(super) fn output_position(
    first_row: usize,
    first_input: usize,
    #[comptime] i: usize,
    #[comptime] j: usize,
) -> (usize, usize) {
    (
        first_row + comptime!(i * UNITS_PER_SIDE) + UNIT_POS_X as usize,
        first_input + comptime!(j * UNITS_PER_SIDE) + UNIT_POS_Y as usize,
    )
}

/// Adds the products of a block of [`BLOCK`] values along k to the accumulators of a unit.
#[cube]
pub(super) fn accumulate_block<A: Numeric>(left: &SharedMemory<A>, right: &SharedMemory<A>, sums: &mut Array<A>) {
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
