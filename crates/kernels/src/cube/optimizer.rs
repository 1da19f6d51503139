//! Weights after a step of their optimizer.
//!
//! Data flow: a unit takes an access of every operand, and writes as many of what comes of them. Traffic: weights, gradients and
//! moments once, and weights and moments once more: 22 bytes a weight in 16 bits for AdamW, 6 for plain descent. Roofline: the
//! memory's.

use super::matrix::{Access, cubes};
use super::{CubeError, Matrix};
use crate::{Adamw, Dtype};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Units of a cube.
const UNITS: usize = 256;

/// Weights and their moments before a step, or after one.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// The weights.
    pub weights: &'a Handle,
    /// The means of their gradients and of the squares of these, in f32.
    pub moments: [&'a Handle; 2],
}

/// A step of AdamW in one passage over memory; the gradient is of the type of the weights.
pub fn adamw<R: Runtime>(
    client: &ComputeClient<R>,
    size: Matrix,
    settings: Adamw,
    before: Weights,
    gradient: &Handle,
    after: Weights,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let wide = Matrix { kind: Dtype::F32, ..size };
    let (weight, gradient) = (size.whole("weights", before.weights), size.whole("gradient", gradient));
    let out = size.whole("weights after", after.weights);
    let [mean, square] = before.moments.map(|moment| wide.whole("moments", moment));
    let [mean_out, square_out] = after.moments.map(|moment| wide.whole("moments after", moment));
    let run = size.rows.saturating_mul(size.cols);
    let access = Access::to(client, &size, run, &[weight, gradient, out, mean, square, mean_out, square_out])?;
    let pieces = size.len() / access.width;
    // SAFETY: the kernel looks at `pieces` before it reads or writes, and every operand holds so many.
    unsafe {
        adamw_step::launch_unchecked::<R>(
            client,
            cubes(client, pieces.div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            access.address,
            access.width,
            access.arg(weight),
            access.arg(gradient),
            access.arg(mean),
            access.arg(square),
            access.arg(out),
            access.arg(mean_out),
            access.arg(square_out),
            settings.into(),
            pieces,
            size.storage(),
        );
    }
    Ok(())
}

/// Weights that lose a share of their gradient, which is of their type.
pub fn descent<R: Runtime>(
    client: &ComputeClient<R>,
    size: Matrix,
    learning_rate: f64,
    weights: &Handle,
    gradient: &Handle,
    after: &Handle,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (weights, gradient) = (size.whole("weights", weights), size.whole("gradient", gradient));
    let after = size.whole("weights after", after);
    let run = size.rows.saturating_mul(size.cols);
    let access = Access::to(client, &size, run, &[weights, gradient, after])?;
    let pieces = size.len() / access.width;
    // SAFETY: the kernel looks at `pieces` before it reads or writes, and every operand holds so many.
    unsafe {
        descent_step::launch_unchecked::<R>(
            client,
            cubes(client, pieces.div_ceil(UNITS)),
            CubeDim::new_1d(UNITS as u32),
            access.address,
            access.width,
            access.arg(weights),
            access.arg(gradient),
            access.arg(after),
            learning_rate as f32,
            pieces,
            size.storage(),
        );
    }
    Ok(())
}

/// The same settings in f32.
#[derive(Clone, Copy, CubeType, CubeLaunch)]
struct Settings {
    learning_rate: f32,
    first_beta: f32,
    first_rest: f32,
    second_beta: f32,
    second_rest: f32,
    first_correction: f32,
    second_correction: f32,
    epsilon: f32,
    decay: f32,
}

impl<R: Runtime> From<Adamw> for SettingsLaunch<R> {
    fn from(settings: Adamw) -> Self {
        let Adamw { learning_rate, betas: [first, second], corrections, epsilon, decay } = settings;
        // In f32 what a beta leaves would be off by a hundred thousandth.
        let [first_rest, second_rest] = [1.0 - first, 1.0 - second];
        Self::new(
            learning_rate as f32,
            first as f32,
            first_rest as f32,
            second as f32,
            second_rest as f32,
            corrections[0] as f32,
            corrections[1] as f32,
            epsilon as f32,
            decay as f32,
        )
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
#[allow(clippy::too_many_arguments, reason = "a kernel takes what it needs one by one")]
fn adamw_step<F: Float, N: Size>(
    weights: &Array<Vector<F, N>>,
    gradients: &Array<Vector<F, N>>,
    means: &Array<Vector<f32, N>>,
    squares: &Array<Vector<f32, N>>,
    out: &mut Array<Vector<F, N>>,
    means_out: &mut Array<Vector<f32, N>>,
    squares_out: &mut Array<Vector<f32, N>>,
    rule: Settings,
    pieces: usize,
    #[define(F)] _kind: StorageType,
) {
    let at = ABSOLUTE_POS;
    if at < pieces {
        let weight = Vector::<f32, N>::cast_from(weights[at]);
        let gradient = Vector::<f32, N>::cast_from(gradients[at]);
        let mean = means[at] * Vector::new(rule.first_beta) + gradient * Vector::new(rule.first_rest);
        let square = squares[at] * Vector::new(rule.second_beta) + gradient * gradient * Vector::new(rule.second_rest);
        let spread = (square * Vector::new(rule.second_correction)).sqrt() + Vector::new(rule.epsilon);
        let direction = mean * Vector::new(rule.first_correction) / spread;
        let step = (direction + weight * Vector::new(rule.decay)) * Vector::new(rule.learning_rate);
        out[at] = Vector::cast_from(weight - step);
        means_out[at] = mean;
        squares_out[at] = square;
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn descent_step<F: Float, N: Size>(
    weights: &Array<Vector<F, N>>,
    gradients: &Array<Vector<F, N>>,
    out: &mut Array<Vector<F, N>>,
    learning_rate: f32,
    pieces: usize,
    #[define(F)] _kind: StorageType,
) {
    let at = ABSOLUTE_POS;
    if at < pieces {
        let weight = Vector::<f32, N>::cast_from(weights[at]);
        let gradient = Vector::<f32, N>::cast_from(gradients[at]);
        out[at] = Vector::cast_from(weight - gradient * Vector::new(learning_rate));
    }
}
