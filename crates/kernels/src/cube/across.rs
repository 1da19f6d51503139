//! What all units of a row find out together.

use super::cut::{Cut, Place};
use cubecl::prelude::*;

/// A way to make one number of two, in any order.
#[cube]
pub(super) trait Fold: 'static + Send + Sync {
    /// What changes nothing.
    fn nothing<M: Size>() -> Vector<f32, M>;
    fn pair<M: Size>(a: Vector<f32, M>, b: Vector<f32, M>) -> Vector<f32, M>;
}

pub(super) struct Sum;

#[cube]
impl Fold for Sum {
    fn nothing<M: Size>() -> Vector<f32, M> {
        Vector::new(0.0)
    }

    fn pair<M: Size>(a: Vector<f32, M>, b: Vector<f32, M>) -> Vector<f32, M> {
        a + b
    }
}

pub(super) struct Max;

#[cube]
impl Fold for Max {
    fn nothing<M: Size>() -> Vector<f32, M> {
        Vector::min_value()
    }

    fn pair<M: Size>(a: Vector<f32, M>, b: Vector<f32, M>) -> Vector<f32, M> {
        max(a, b)
    }
}

/// The numbers of one access folded into one.
#[cube]
pub(super) fn within<O: Fold, N: Size>(own: Vector<f32, N>) -> f32 {
    let mut folded = O::nothing::<Const<1>>();
    #[unroll]
    for at in 0..N::value() {
        folded = O::pair::<Const<1>>(folded, Vector::new(own[at]));
    }
    folded[0]
}

/// What all units of a plane have, folded, given to each of them. The number of steps is known, so they are unrolled.
#[cube]
fn in_plane<O: Fold, M: Size>(own: Vector<f32, M>, #[comptime] plane: usize) -> Vector<f32, M> {
    let mut folded = own;
    #[unroll]
    for step in 0..comptime!(plane.ilog2()) {
        folded = O::pair::<M>(folded, plane_shuffle_xor(folded, 1 << step));
    }
    folded
}

/// What all units of the row have, folded, given to each of them. Every unit of the cube must call it.
#[cube]
pub(super) fn across<O: Fold, M: Size>(own: Vector<f32, M>, place: &Place, #[comptime] cut: Cut) -> Vector<f32, M> {
    let row = UNIT_POS_Y as usize;
    if comptime!(cut.plane.is_some()) {
        let plane = comptime!(cut.plane.unwrap_or(1));
        let planes = comptime!(cut.units / plane);
        let mut folded = in_plane::<O, M>(own, plane);
        if comptime!(planes > 1) {
            let mut shared = SharedMemory::<Vector<f32, M>>::new(comptime!(cut.rows * planes));
            let lane = place.lane % plane;
            if lane == 0 {
                shared[row * planes + place.lane / plane] = folded;
            }
            sync_cube();
            // Each plane folds what all of them have.
            let mut part = O::nothing::<M>();
            #[unroll]
            for turn in 0..comptime!(planes.div_ceil(plane)) {
                let at = turn * plane + lane;
                if at < planes {
                    part = O::pair::<M>(part, shared[row * planes + at]);
                }
            }
            folded = in_plane::<O, M>(part, plane);
        }
        folded
    } else {
        let first = row * comptime!(cut.units);
        let mut shared = SharedMemory::<Vector<f32, M>>::new(comptime!(cut.rows * cut.units));
        shared[first + place.lane] = own;
        sync_cube();
        let mut left = comptime!(cut.units).runtime();
        while left > 1 {
            let half = left.div_ceil(2);
            if place.lane + half < left {
                let pair = O::pair::<M>(shared[first + place.lane], shared[first + place.lane + half]);
                shared[first + place.lane] = pair;
            }
            sync_cube();
            left = half;
        }
        shared[first]
    }
}
