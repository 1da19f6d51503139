//! Normalization of each row by its root mean square.
//!
//! Data flow: units of a row keep their part of it in registers (`cut.rs`), add up its squares together, and write. Traffic: x
//! and the output once, or x twice where a row is too long to be kept; the gain from a cache. Roofline: the memory's.

use super::across::{Sum, across, within};
use super::cut::{Cut, has, place};
use super::matrix::{Access, cubes, storage};
use super::{CubeError, Matrix};
use crate::Dtype;
use cubecl::prelude::*;
use cubecl::server::Handle;

/// out = x / sqrt(mean of squares + epsilon) * gain for each row of x; the gain has one factor for each column, in a type of
/// its own.
pub fn rms_norm<R: Runtime>(
    client: &ComputeClient<R>,
    size: Matrix,
    x: &Handle,
    gain: &Handle,
    gain_kind: Dtype,
    epsilon: f32,
    out: &Handle,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (x, gain, out) = (size.whole("x", x), size.row_of(gain_kind, "gain", gain), size.whole("out", out));
    let access = Access::to(client, &size, size.cols, &[x, gain, out])?;
    let cut = Cut::of(client, &size, &access);
    // SAFETY: every position is within a row and every row within `rows`, and the operands hold so much.
    unsafe {
        normalize::launch_unchecked::<R>(
            client,
            cubes(client, size.rows.div_ceil(cut.rows)),
            cut.cube(),
            access.address,
            access.width,
            access.arg(x),
            access.arg(gain),
            access.arg(out),
            size.rows,
            epsilon,
            cut,
            size.storage(),
            storage(gain_kind),
        );
    }
    Ok(())
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn normalize<F: Float, G: Float, N: Size>(
    x: &Array<Vector<F, N>>,
    gain: &Array<Vector<G, N>>,
    out: &mut Array<Vector<F, N>>,
    rows: usize,
    epsilon: f32,
    #[comptime] cut: Cut,
    #[define(F)] _kind: StorageType,
    #[define(G)] _gain_kind: StorageType,
) {
    let place = place(rows, cut);
    let mut kept = Array::<Vector<f32, N>>::new(comptime!(cut.kept()));

    let mut squares = Vector::<f32, N>::new(0.0);
    #[unroll(cut.held)]
    for turn in 0..comptime!(cut.turns()) {
        if has(&place, turn, cut) {
            let value = Vector::<f32, N>::cast_from(x[place.first + turn * comptime!(cut.units)]);
            if comptime!(cut.held) {
                kept[turn] = value;
            }
            squares += value * value;
        }
    }
    let squares = across::<Sum, Const<1>>(Vector::new(within::<Sum, N>(squares)), &place, cut);
    let mean = squares[0] * comptime!(1.0 / cut.cols as f32);
    let scale = Vector::<f32, N>::new((mean + epsilon).inverse_sqrt());

    #[unroll(cut.held)]
    for turn in 0..comptime!(cut.turns()) {
        if has(&place, turn, cut) && place.writes {
            let at = place.first + turn * comptime!(cut.units);
            let gain = Vector::<f32, N>::cast_from(gain[place.lane + turn * comptime!(cut.units)]);
            let value = if comptime!(cut.held) { kept[turn] } else { Vector::<f32, N>::cast_from(x[at]) };
            out[at] = Vector::cast_from(value * scale * gain);
        }
    }
}
