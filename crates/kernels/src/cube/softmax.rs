//! Softmax of rows.
//!
//! Data flow: the units of a row keep it in registers (see the row tile), reduce the maximum, then the sum of the
//! exponentials, and write the quotients. Traffic: x and the output once; x three times if a row exceeds the registers.
//! Roofline: memory bandwidth, with one exponential per element.

use super::matrix::{VectorAccess, cubes};
use super::row_reduce::{MaxOp, SumOp, reduce_row, reduce_vector};
use super::row_tile::{CubeRowTile, has_vector, unit_position};
use super::{CubeError, MatrixLayout};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Enqueues out = exp(x - max) / sum of exp(x - max) for each row of x.
pub fn softmax<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    x: &Handle,
    out: &Handle,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (x, out) = (size.operand("x", x), size.operand("out", out));
    let access = VectorAccess::for_operands(client, &size, size.cols, &[x, out])?;
    let tile = CubeRowTile::for_device(client, &size, &access);
    // SAFETY: every index is within a row, every row is below `rows`, and the operands hold `rows` rows.
    unsafe {
        exponentials::launch_unchecked::<R>(
            client,
            cubes(client, size.rows.div_ceil(tile.rows)),
            tile.cube(),
            access.address,
            access.width,
            access.arg(x),
            access.arg(out),
            size.rows,
            tile,
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
    #[comptime] tile: CubeRowTile,
    #[define(F)] _kind: StorageType,
) {
    let place = unit_position(rows, tile);
    let mut held_values = Array::<Vector<f32, N>>::new(comptime!(tile.register_vectors()));

    let mut largest = Vector::<f32, N>::min_value();
    #[unroll(tile.in_registers)]
    for turn in 0..comptime!(tile.vectors_per_unit()) {
        if has_vector(&place, turn, tile) {
            let value = Vector::<f32, N>::cast_from(x[place.first + turn * comptime!(tile.units)]);
            if comptime!(tile.in_registers) {
                held_values[turn] = value;
            }
            largest = max(largest, value);
        }
    }
    let largest = reduce_row::<MaxOp, Const<1>>(Vector::new(reduce_vector::<MaxOp, N>(largest)), &place, tile);
    let largest = Vector::<f32, N>::new(largest[0]);

    let mut total = Vector::<f32, N>::new(0.0);
    #[unroll(tile.in_registers)]
    for turn in 0..comptime!(tile.vectors_per_unit()) {
        if has_vector(&place, turn, tile) {
            if comptime!(tile.in_registers) {
                let value = (held_values[turn] - largest).exp();
                held_values[turn] = value;
                total += value;
            } else {
                let value = Vector::<f32, N>::cast_from(x[place.first + turn * comptime!(tile.units)]);
                total += (value - largest).exp();
            }
        }
    }
    let total = reduce_row::<SumOp, Const<1>>(Vector::new(reduce_vector::<SumOp, N>(total)), &place, tile);
    let scale = Vector::<f32, N>::new(1.0 / total[0]);

    #[unroll(tile.in_registers)]
    for turn in 0..comptime!(tile.vectors_per_unit()) {
        if has_vector(&place, turn, tile) && place.writes {
            let at = place.first + turn * comptime!(tile.units);
            let value = if comptime!(tile.in_registers) {
                held_values[turn]
            } else {
                (Vector::<f32, N>::cast_from(x[at]) - largest).exp()
            };
            out[at] = Vector::cast_from(value * scale);
        }
    }
}
