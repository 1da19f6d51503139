//! Reductions over all units of a row.

use super::row_tile::{CubeRowTile, UnitPosition};
use cubecl::prelude::*;

/// Associative and commutative operator.
#[cube]
pub(super) trait ReduceOp: 'static + Send + Sync {
    /// Neutral element.
    fn identity<M: Size>() -> Vector<f32, M>;
    fn combine<M: Size>(a: Vector<f32, M>, b: Vector<f32, M>) -> Vector<f32, M>;
}

pub(super) struct SumOp;

#[cube]
impl ReduceOp for SumOp {
    fn identity<M: Size>() -> Vector<f32, M> {
        Vector::new(0.0)
    }

    fn combine<M: Size>(a: Vector<f32, M>, b: Vector<f32, M>) -> Vector<f32, M> {
        a + b
    }
}

pub(super) struct MaxOp;

#[cube]
impl ReduceOp for MaxOp {
    fn identity<M: Size>() -> Vector<f32, M> {
        Vector::min_value()
    }

    fn combine<M: Size>(a: Vector<f32, M>, b: Vector<f32, M>) -> Vector<f32, M> {
        max(a, b)
    }
}

/// Reduces the elements of a vector.
#[cube]
pub(super) fn reduce_vector<O: ReduceOp, N: Size>(own: Vector<f32, N>) -> f32 {
    let mut folded = O::identity::<Const<1>>();
    #[unroll]
    for at in 0..N::value() {
        folded = O::combine::<Const<1>>(folded, Vector::new(own[at]));
    }
    folded[0]
}

/// Reduces over the units of a plane; every unit gets the result. The number of steps is known at compile time, so they
/// are unrolled.
#[cube]
fn reduce_plane<O: ReduceOp, M: Size>(own: Vector<f32, M>, #[comptime] plane: usize) -> Vector<f32, M> {
    let mut folded = own;
    #[unroll]
    for step in 0..comptime!(plane.ilog2()) {
        folded = O::combine::<M>(folded, plane_shuffle_xor(folded, 1 << step));
    }
    folded
}

/// Reduces over the units of a row; every unit gets the result. Must be called by every unit of the cube.
#[cube]
pub(super) fn reduce_row<O: ReduceOp, M: Size>(
    own: Vector<f32, M>,
    place: &UnitPosition,
    #[comptime] tile: CubeRowTile,
) -> Vector<f32, M> {
    let row = UNIT_POS_Y as usize;
    if comptime!(tile.plane.is_some()) {
        let plane = comptime!(tile.plane.unwrap_or(1));
        let planes = comptime!(tile.units / plane);
        let mut folded = reduce_plane::<O, M>(own, plane);
        if comptime!(planes > 1) {
            let mut shared = SharedMemory::<Vector<f32, M>>::new(comptime!(tile.rows * planes));
            let lane = place.lane % plane;
            if lane == 0 {
                shared[row * planes + place.lane / plane] = folded;
            }
            sync_cube();
            // Every plane reduces the results of all planes.
            let mut part = O::identity::<M>();
            #[unroll]
            for turn in 0..comptime!(planes.div_ceil(plane)) {
                let at = turn * plane + lane;
                if at < planes {
                    part = O::combine::<M>(part, shared[row * planes + at]);
                }
            }
            folded = reduce_plane::<O, M>(part, plane);
        }
        folded
    } else {
        let first = row * comptime!(tile.units);
        let mut shared = SharedMemory::<Vector<f32, M>>::new(comptime!(tile.rows * tile.units));
        shared[first + place.lane] = own;
        sync_cube();
        let mut left = comptime!(tile.units).runtime();
        while left > 1 {
            let half = left.div_ceil(2);
            if place.lane + half < left {
                let pair = O::combine::<M>(shared[first + place.lane], shared[first + place.lane + half]);
                shared[first + place.lane] = pair;
            }
            sync_cube();
            left = half;
        }
        shared[first]
    }
}
