//! Layer normalization of rows, optionally fused with a residual addition and an activation.
//!
//! Data flow: the units of a row keep it in registers (see the row tile), reduce the mean and then the variance, and
//! write the result. Traffic: every operand once; x three times if a row exceeds the registers. Roofline: memory
//! bandwidth, if the activation is cheap enough.

use super::activation::apply;
use super::matrix::{VectorAccess, cubes};
use super::row_reduce::{SumOp, reduce_row, reduce_vector};
use super::row_tile::{CubeRowTile, has_vector, unit_position};
use super::{CubeError, MatrixLayout, SmoothActivation};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Arguments of out = f((x - mean) / sqrt(variance + epsilon) * gain + bias) for each row of x, with the population
/// variance.
#[derive(Debug, Clone, Copy)]
pub struct LayerNormArgs<'a> {
    /// Input rows.
    pub x: &'a Handle,
    /// Residual, added first.
    pub residual: Option<Residual<'a>>,
    /// Factor per column.
    pub gain: &'a Handle,
    /// Offset per column.
    pub bias: &'a Handle,
    /// Constant added to the variance.
    pub epsilon: f32,
    /// Activation f.
    pub activation: Option<SmoothActivation>,
    /// Output rows.
    pub out: &'a Handle,
}

/// Residual addend and output of the sum. The unrounded sum is normalized.
#[derive(Debug, Clone, Copy)]
pub struct Residual<'a> {
    /// Addend.
    pub addend: &'a Handle,
    /// Output of the sum.
    pub sum: &'a Handle,
}

/// Enqueues the layer normalization.
pub fn layer_norm<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    norm: LayerNormArgs,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (x, out) = (size.operand("x", norm.x), size.operand("out", norm.out));
    let (gain, bias) = (size.row_operand("gain", norm.gain), size.row_operand("bias", norm.bias));
    let addend = norm.residual.map(|residual| size.operand("addend", residual.addend));
    let sum = norm.residual.map(|residual| size.operand("sum", residual.sum));
    let operands: Vec<_> = [x, gain, bias, out].into_iter().chain(addend).chain(sum).collect();
    let access = VectorAccess::for_operands(client, &size, size.cols, &operands)?;
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
            addend.map(|addend| access.arg(addend)).into(),
            access.arg(gain),
            access.arg(bias),
            sum.map(|sum| access.arg(sum)).into(),
            access.arg(out),
            size.rows,
            norm.epsilon,
            tile,
            norm.activation,
            size.storage(),
        );
    }
    Ok(())
}

/// Computes the mean first and the variance around it. The sum of the differences would be zero in exact arithmetic; it
/// corrects the rounding error of the mean, which matters if the mean is large compared with the spread.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "kernel arguments are passed individually")]
fn normalize<F: Float, N: Size>(
    x: &Array<Vector<F, N>>,
    addend: &ComptimeOption<Array<Vector<F, N>>>,
    gain: &Array<Vector<F, N>>,
    bias: &Array<Vector<F, N>>,
    sum: &mut ComptimeOption<Array<Vector<F, N>>>,
    out: &mut Array<Vector<F, N>>,
    rows: usize,
    epsilon: f32,
    #[comptime] tile: CubeRowTile,
    #[comptime] activation: Option<SmoothActivation>,
    #[define(F)] _kind: StorageType,
) {
    let place = unit_position(rows, tile);
    let share = comptime!(1.0 / tile.cols as f32);
    let mut held_values = Array::<Vector<f32, N>>::new(comptime!(tile.register_vectors()));

    let mut total = Vector::<f32, N>::new(0.0);
    #[unroll(tile.in_registers)]
    for turn in 0..comptime!(tile.vectors_per_unit()) {
        if has_vector(&place, turn, tile) {
            let at = place.first + turn * comptime!(tile.units);
            let value = load(x, addend, at);
            #[comptime]
            match sum {
                ComptimeOption::Some(sum) => {
                    if place.writes {
                        sum[at] = Vector::cast_from(value);
                    }
                }
                ComptimeOption::None => {}
            }
            if comptime!(tile.in_registers) {
                held_values[turn] = value;
            }
            total += value;
        }
    }
    let total = reduce_row::<SumOp, Const<1>>(Vector::new(reduce_vector::<SumOp, N>(total)), &place, tile);
    let rough_mean = Vector::<f32, N>::new(total[0] * share);

    let mut apart = Vector::<f32, N>::new(0.0);
    let mut squares = Vector::<f32, N>::new(0.0);
    #[unroll(tile.in_registers)]
    for turn in 0..comptime!(tile.vectors_per_unit()) {
        if has_vector(&place, turn, tile) {
            let value = if comptime!(tile.in_registers) {
                held_values[turn]
            } else {
                load(x, addend, place.first + turn * comptime!(tile.units))
            };
            let difference = value - rough_mean;
            if comptime!(tile.in_registers) {
                held_values[turn] = difference;
            }
            apart += difference;
            squares += difference * difference;
        }
    }
    let mut both = Vector::<f32, Const<2>>::empty();
    both[0] = reduce_vector::<SumOp, N>(apart);
    both[1] = reduce_vector::<SumOp, N>(squares);
    let both = reduce_row::<SumOp, Const<2>>(both, &place, tile);
    let correction = both[0] * share;
    let variance = max(both[1] * share - correction * correction, 0.0);
    let correction = Vector::<f32, N>::new(correction);
    let scale = Vector::<f32, N>::new((variance + epsilon).inverse_sqrt());

    #[unroll(tile.in_registers)]
    for turn in 0..comptime!(tile.vectors_per_unit()) {
        if has_vector(&place, turn, tile) && place.writes {
            let at = place.first + turn * comptime!(tile.units);
            let column = place.lane + turn * comptime!(tile.units);
            let difference =
                if comptime!(tile.in_registers) { held_values[turn] } else { load(x, addend, at) - rough_mean };
            let gain = Vector::<f32, N>::cast_from(gain[column]);
            let bias = Vector::<f32, N>::cast_from(bias[column]);
            let result = (difference - correction) * scale * gain + bias;
            match comptime!(activation) {
                Some(activation) => out[at] = Vector::cast_from(apply(result, activation)),
                None => out[at] = Vector::cast_from(result),
            }
        }
    }
}

#[cube]
fn load<F: Float, N: Size>(
    x: &Array<Vector<F, N>>,
    addend: &ComptimeOption<Array<Vector<F, N>>>,
    at: usize,
) -> Vector<f32, N> {
    let value = Vector::<f32, N>::cast_from(x[at]);
    #[comptime]
    match addend {
        ComptimeOption::Some(addend) => value + Vector::<f32, N>::cast_from(addend[at]),
        ComptimeOption::None => value,
    }
}
