//! Optimizer steps: AdamW at step 10 and SGD, computed in f32 and rounded once to the dtype of the weights.
//!
//! AdamW with gradient g: m = β₁ m + (1 - β₁) g; v = β₂ v + (1 - β₂) g²; w = w - lr (m̂ / (√v̂ + ε) + λ w), with m̂ = m
//! / (1 - β₁^10) and v̂ = v / (1 - β₂^10). SGD: w = w - lr g.

use burn::tensor::{DType, Tensor, backend::Backend};

pub(crate) const LEARNING_RATE: f64 = 0.01;
pub(crate) const BETAS: [f64; 2] = [0.9, 0.999];
pub(crate) const EPSILON: f64 = 1e-8;
pub(crate) const WEIGHT_DECAY: f64 = 0.01;
const ADAMW_STEP: i32 = 10;

/// Operations of AdamW per weight: three for the first moment, four for the second, two bias corrections, and the
/// update of the weight.
pub(crate) const ADAMW_FLOPS: u64 = 15;
/// Operations of SGD per weight: a multiplication and a subtraction.
pub(crate) const SGD_FLOPS: u64 = 2;

/// Bias correction of a moment that started at zero: 1 / (1 - beta^step).
pub(crate) fn bias_correction(beta: f64) -> f64 {
    1.0 / (1.0 - beta.powi(ADAMW_STEP))
}

/// AdamW settings for the kernels.
#[cfg(any(feature = "native", feature = "wgpu"))]
pub(crate) fn adamw_settings() -> calorimeter_kernels::Adamw {
    calorimeter_kernels::Adamw {
        learning_rate: LEARNING_RATE,
        betas: BETAS,
        corrections: BETAS.map(bias_correction),
        epsilon: EPSILON,
        decay: WEIGHT_DECAY,
    }
}

/// Weight and its moments after an AdamW step, in double precision.
pub(crate) fn adamw_f64(weight: f64, gradient: f64, [mean, square]: [f64; 2]) -> (f64, [f64; 2]) {
    let [first, second] = BETAS;
    let mean = first * mean + (1.0 - first) * gradient;
    let square = second * square + (1.0 - second) * gradient * gradient;
    let direction = mean * bias_correction(first) / ((square * bias_correction(second)).sqrt() + EPSILON);
    (weight - LEARNING_RATE * (direction + WEIGHT_DECAY * weight), [mean, square])
}

/// Weight after an SGD step, in double precision.
pub(crate) fn sgd_f64(weight: f64, gradient: f64) -> f64 {
    weight - LEARNING_RATE * gradient
}

/// Optimizer step: maps weights, gradient and moments (AdamW only) to the new weights, followed by the new moments.
pub(crate) type OptimizerUpdate<B> = fn(Tensor<B, 2>, Tensor<B, 2>, Option<[Tensor<B, 2>; 2]>) -> Vec<Tensor<B, 2>>;

/// Optimizer step by burn's operations: AdamW if there are moments, otherwise SGD.
pub(crate) fn update_weights<B: Backend>(
    weight: Tensor<B, 2>,
    gradient: Tensor<B, 2>,
    moments: Option<[Tensor<B, 2>; 2]>,
) -> Vec<Tensor<B, 2>> {
    match moments {
        Some(moments) => adamw(weight, gradient, moments).into(),
        None => vec![sgd(weight, gradient)],
    }
}

/// Weights and moments after an AdamW step.
fn adamw<B: Backend>(
    weight: Tensor<B, 2>,
    gradient: Tensor<B, 2>,
    [mean, square]: [Tensor<B, 2>; 2],
) -> [Tensor<B, 2>; 3] {
    let [first, second] = BETAS;
    let (dtype, wide) = (weight.dtype(), mean.dtype());
    let (weight, gradient) = (weight.cast(wide), gradient.cast(wide));
    let mean = mean * first + gradient.clone() * (1.0 - first);
    let square = square * second + gradient.clone() * gradient * (1.0 - second);
    let direction =
        mean.clone() * bias_correction(first) / ((square.clone() * bias_correction(second)).sqrt() + EPSILON);
    let weight = weight.clone() - (direction + weight * WEIGHT_DECAY) * LEARNING_RATE;
    [weight.cast(dtype), mean, square]
}

/// Weights after an SGD step.
fn sgd<B: Backend>(weight: Tensor<B, 2>, gradient: Tensor<B, 2>) -> Tensor<B, 2> {
    let dtype = weight.dtype();
    let [weight, gradient] = [weight, gradient].map(|tensor| tensor.cast(DType::F32));
    (weight - gradient * LEARNING_RATE).cast(dtype)
}
