//! Layer normalization of each row, with what often stands before and after it.
//!
//! Data flow: units of a row keep their part of it in registers (`cut.rs`), find its mean together and then its variance, and
//! write what comes of that. Traffic: every operand once, or x three times where a row is too long to be kept. Roofline: the
//! memory's, as long as the activation keeps up.

use super::across::{Sum, across, within};
use super::activation::apply;
use super::cut::{Cut, has, place};
use super::matrix::{Access, cubes};
use super::{CubeError, Matrix, SmoothActivation};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// out = f((x - mean) / sqrt(variance + epsilon) * gain + bias) for each row of x, with the variance of the population.
#[derive(Debug, Clone, Copy)]
pub struct LayerNorm<'a> {
    /// The rows.
    pub x: &'a Handle,
    /// What is added to them first.
    pub residual: Option<Residual<'a>>,
    /// One factor for each column.
    pub gain: &'a Handle,
    /// One summand for each column.
    pub bias: &'a Handle,
    /// What is added to the variance.
    pub epsilon: f32,
    /// f, if there is one.
    pub activation: Option<SmoothActivation>,
    /// Where the results go.
    pub out: &'a Handle,
}

/// A second input, and where its sum with the first goes. What is normalized is the sum before it is rounded.
#[derive(Debug, Clone, Copy)]
pub struct Residual<'a> {
    /// The second input.
    pub addend: &'a Handle,
    /// Where the sum goes.
    pub sum: &'a Handle,
}

/// Normalizes rows.
pub fn layer_norm<R: Runtime>(client: &ComputeClient<R>, size: Matrix, norm: LayerNorm) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (x, out) = (size.whole("x", norm.x), size.whole("out", norm.out));
    let (gain, bias) = (size.row("gain", norm.gain), size.row("bias", norm.bias));
    let addend = norm.residual.map(|residual| size.whole("addend", residual.addend));
    let sum = norm.residual.map(|residual| size.whole("sum", residual.sum));
    let operands: Vec<_> = [x, gain, bias, out].into_iter().chain(addend).chain(sum).collect();
    let access = Access::to(client, &size, size.cols, &operands)?;
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
            addend.map(|addend| access.arg(addend)).into(),
            access.arg(gain),
            access.arg(bias),
            sum.map(|sum| access.arg(sum)).into(),
            access.arg(out),
            size.rows,
            norm.epsilon,
            cut,
            norm.activation,
            size.storage(),
        );
    }
    Ok(())
}

/// The mean comes first and the variance around it. The sum of the differences would be zero in exact arithmetic; it
/// corrects what rounding did to the mean, which matters when the mean is large and the spread is not.
#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn normalize<F: Float, N: Size>(
    x: &Array<Vector<F, N>>,
    addend: &ComptimeOption<Array<Vector<F, N>>>,
    gain: &Array<Vector<F, N>>,
    bias: &Array<Vector<F, N>>,
    sum: &mut ComptimeOption<Array<Vector<F, N>>>,
    out: &mut Array<Vector<F, N>>,
    rows: usize,
    epsilon: f32,
    #[comptime] cut: Cut,
    #[comptime] activation: Option<SmoothActivation>,
    #[define(F)] _kind: StorageType,
) {
    let place = place(rows, cut);
    let share = comptime!(1.0 / cut.cols as f32);
    let mut kept = Array::<Vector<f32, N>>::new(comptime!(cut.kept()));

    let mut total = Vector::<f32, N>::new(0.0);
    #[unroll(cut.held)]
    for turn in 0..comptime!(cut.turns()) {
        if has(&place, turn, cut) {
            let at = place.first + turn * comptime!(cut.units);
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
            if comptime!(cut.held) {
                kept[turn] = value;
            }
            total += value;
        }
    }
    let total = across::<Sum, Const<1>>(Vector::new(within::<Sum, N>(total)), &place, cut);
    let rough_mean = Vector::<f32, N>::new(total[0] * share);

    let mut apart = Vector::<f32, N>::new(0.0);
    let mut squares = Vector::<f32, N>::new(0.0);
    #[unroll(cut.held)]
    for turn in 0..comptime!(cut.turns()) {
        if has(&place, turn, cut) {
            let value = if comptime!(cut.held) {
                kept[turn]
            } else {
                load(x, addend, place.first + turn * comptime!(cut.units))
            };
            let difference = value - rough_mean;
            if comptime!(cut.held) {
                kept[turn] = difference;
            }
            apart += difference;
            squares += difference * difference;
        }
    }
    let mut both = Vector::<f32, Const<2>>::empty();
    both[0] = within::<Sum, N>(apart);
    both[1] = within::<Sum, N>(squares);
    let both = across::<Sum, Const<2>>(both, &place, cut);
    let correction = both[0] * share;
    let variance = max(both[1] * share - correction * correction, 0.0);
    let correction = Vector::<f32, N>::new(correction);
    let scale = Vector::<f32, N>::new((variance + epsilon).inverse_sqrt());

    #[unroll(cut.held)]
    for turn in 0..comptime!(cut.turns()) {
        if has(&place, turn, cut) && place.writes {
            let at = place.first + turn * comptime!(cut.units);
            let column = place.lane + turn * comptime!(cut.units);
            let difference = if comptime!(cut.held) { kept[turn] } else { load(x, addend, at) - rough_mean };
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
