//! RMS normalization of rows.
//!
//! Data flow: the units of a row keep it in registers (see the row tile), reduce the squares, and write the result.
//! Traffic: x and the output once; x twice if a row exceeds the registers; the gain from the cache. Roofline: memory
//! bandwidth.

use super::matrix::{VectorAccess, cubes, storage};
use super::row_reduce::{SumOp, reduce_row, reduce_vector};
use super::row_tile::{CubeRowTile, has_vector, unit_position};
use super::{CubeError, MatrixLayout};
use crate::Dtype;
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Enqueues out = x / sqrt(mean of squares + epsilon) * gain for each row of x; the gain has one factor per column and
/// may have another dtype.
pub fn rms_norm<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    x: &Handle,
    gain: &Handle,
    gain_kind: Dtype,
    epsilon: f32,
    out: &Handle,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (x, gain, out) = (size.operand("x", x), size.row_operand_of(gain_kind, "gain", gain), size.operand("out", out));
    let access = VectorAccess::for_operands(client, &size, size.cols, &[x, gain, out])?;
    let tile = CubeRowTile::for_device(client, &size, &access);
    // SAFETY: every index is within a row, every row is below `rows`, and the operands hold `rows` rows.
    unsafe {
        normalize::launch_unchecked::<R>(
            client,
            cubes(client, size.rows.div_ceil(tile.rows)),
            tile.cube(),
            access.address,
            access.width,
            access.arg(x),
            access.arg(gain),
            access.arg(out),
            size.rows,
            epsilon,
            tile,
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
    #[comptime] tile: CubeRowTile,
    #[define(F)] _kind: StorageType,
    #[define(G)] _gain_kind: StorageType,
) {
    let place = unit_position(rows, tile);
    let mut held_values = Array::<Vector<f32, N>>::new(comptime!(tile.register_vectors()));

    let mut squares = Vector::<f32, N>::new(0.0);
    #[unroll(tile.in_registers)]
    for turn in 0..comptime!(tile.vectors_per_unit()) {
        if has_vector(&place, turn, tile) {
            let value = Vector::<f32, N>::cast_from(x[place.first + turn * comptime!(tile.units)]);
            if comptime!(tile.in_registers) {
                held_values[turn] = value;
            }
            squares += value * value;
        }
    }
    let squares = reduce_row::<SumOp, Const<1>>(Vector::new(reduce_vector::<SumOp, N>(squares)), &place, tile);
    let mean = squares[0] * comptime!(1.0 / tile.cols as f32);
    let scale = Vector::<f32, N>::new((mean + epsilon).inverse_sqrt());

    #[unroll(tile.in_registers)]
    for turn in 0..comptime!(tile.vectors_per_unit()) {
        if has_vector(&place, turn, tile) && place.writes {
            let at = place.first + turn * comptime!(tile.units);
            let gain = Vector::<f32, N>::cast_from(gain[place.lane + turn * comptime!(tile.units)]);
            let value =
                if comptime!(tile.in_registers) { held_values[turn] } else { Vector::<f32, N>::cast_from(x[at]) };
            out[at] = Vector::cast_from(value * scale * gain);
        }
    }
}
