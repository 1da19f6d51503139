//! Optimizer steps.
//!
//! Data flow: each unit processes one vector of every operand. Traffic: weights, gradients and moments read once,
//! weights and moments written once: with 16-bit weights 22 bytes per weight for AdamW and 6 for SGD. Roofline: memory
//! bandwidth.

use super::matrix::{VectorAccess, cubes};
use super::{CubeError, MatrixLayout};
use crate::{Adamw, Dtype};
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Units per cube.
const UNITS: usize = 256;

/// Weights and moments before or after a step.
#[derive(Debug, Clone, Copy)]
pub struct OptimizerState<'a> {
    /// Weights.
    pub weights: &'a Handle,
    /// First and second moments, in f32.
    pub moments: [&'a Handle; 2],
}

/// Enqueues an AdamW step in a single pass over memory; the gradient has the dtype of the weights.
pub fn adamw<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    settings: Adamw,
    before: OptimizerState,
    gradient: &Handle,
    after: OptimizerState,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let wide = MatrixLayout { kind: Dtype::F32, ..size };
    let (weight, gradient) = (size.operand("weights", before.weights), size.operand("gradient", gradient));
    let out = size.operand("weights after", after.weights);
    let [mean, square] = before.moments.map(|moment| wide.operand("moments", moment));
    let [mean_out, square_out] = after.moments.map(|moment| wide.operand("moments after", moment));
    let run = size.rows.saturating_mul(size.cols);
    let access =
        VectorAccess::for_operands(client, &size, run, &[weight, gradient, out, mean, square, mean_out, square_out])?;
    let pieces = size.len() / access.width;
    // SAFETY: the kernel checks `pieces` before it reads or writes, and every operand holds `pieces` vectors.
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

/// Enqueues a plain SGD step; the gradient has the dtype of the weights.
pub fn sgd<R: Runtime>(
    client: &ComputeClient<R>,
    size: MatrixLayout,
    learning_rate: f64,
    weights: &Handle,
    gradient: &Handle,
    after: &Handle,
) -> Result<(), CubeError> {
    if size.is_empty() {
        return Ok(());
    }
    let (weights, gradient) = (size.operand("weights", weights), size.operand("gradient", gradient));
    let after = size.operand("weights after", after);
    let run = size.rows.saturating_mul(size.cols);
    let access = VectorAccess::for_operands(client, &size, run, &[weights, gradient, after])?;
    let pieces = size.len() / access.width;
    // SAFETY: the kernel checks `pieces` before it reads or writes, and every operand holds `pieces` vectors.
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

/// AdamW settings in f32, as kernel arguments.
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
        // 1 - beta is computed in f64: in f32 it would have a relative error of 1e-5.
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
#[allow(clippy::too_many_arguments, reason = "kernel arguments are passed individually")]
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
