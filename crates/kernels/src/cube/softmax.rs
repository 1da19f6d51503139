//! Softmax of each row.
//!
//! Data flow: units of a row keep their part of it in registers (`cut.rs`), find its largest number together, then the sum of the
//! exponentials, and write their shares. Traffic: x and the output once, or x three times where a row is too long to be kept.
//! Roofline: the memory's: an exponential for each number.

use super::across::{Max, Sum, across, within};
use super::cut::{Cut, has, place};
use super::matrix::{Access, cubes};
use super::{CubeError, Matrix};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// out = exp(x - maximum) / sum of these, for each row of x.
pub fn softmax<R: Runtime>(client: &ComputeClient<R>, size: Matrix, x: &Handle, out: &Handle) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (x, out) = (size.whole("x", x), size.whole("out", out));
    let access = Access::to(client, &size, size.cols, &[x, out])?;
    let cut = Cut::of(client, &size, &access);
    // SAFETY: every position is within a row and every row within `rows`, and the operands hold so much.
    unsafe {
        exponentials::launch_unchecked::<R>(
            client,
            cubes(client, size.rows.div_ceil(cut.rows)),
            cut.cube(),
            access.address,
            access.width,
            access.arg(x),
            access.arg(out),
            size.rows,
            cut,
            size.storage(),
        );
    }
    Ok(())
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn exponentials<F: Float, N: Size>(
    x: &Array<Vector<F, N>>,
    out: &mut Array<Vector<F, N>>,
    rows: usize,
    #[comptime] cut: Cut,
    #[define(F)] _kind: StorageType,
) {
    let place = place(rows, cut);
    let mut kept = Array::<Vector<f32, N>>::new(comptime!(cut.kept()));

    let mut largest = Vector::<f32, N>::min_value();
    #[unroll(cut.held)]
    for turn in 0..comptime!(cut.turns()) {
        if has(&place, turn, cut) {
            let value = Vector::<f32, N>::cast_from(x[place.first + turn * comptime!(cut.units)]);
            if comptime!(cut.held) {
                kept[turn] = value;
            }
            largest = max(largest, value);
        }
    }
    let largest = across::<Max, Const<1>>(Vector::new(within::<Max, N>(largest)), &place, cut);
    let largest = Vector::<f32, N>::new(largest[0]);

    let mut total = Vector::<f32, N>::new(0.0);
    #[unroll(cut.held)]
    for turn in 0..comptime!(cut.turns()) {
        if has(&place, turn, cut) {
            if comptime!(cut.held) {
                let value = (kept[turn] - largest).exp();
                kept[turn] = value;
                total += value;
            } else {
                let value = Vector::<f32, N>::cast_from(x[place.first + turn * comptime!(cut.units)]);
                total += (value - largest).exp();
            }
        }
    }
    let total = across::<Sum, Const<1>>(Vector::new(within::<Sum, N>(total)), &place, cut);
    let scale = Vector::<f32, N>::new(1.0 / total[0]);

    #[unroll(cut.held)]
    for turn in 0..comptime!(cut.turns()) {
        if has(&place, turn, cut) && place.writes {
            let at = place.first + turn * comptime!(cut.units);
            let value =
                if comptime!(cut.held) { kept[turn] } else { (Vector::<f32, N>::cast_from(x[at]) - largest).exp() };
            out[at] = Vector::cast_from(value * scale);
        }
    }
}
