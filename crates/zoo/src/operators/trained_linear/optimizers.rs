//! What optimizers make of a weight, in f32 and rounded once to its type.
//!
//! AdamW with the settings of its paper, at its tenth step: w loses a share of itself, and a step along the mean of its
//! gradients over the root of the mean of their squares. Plain descent: w loses a share of its gradient.

use burn::tensor::{DType, Tensor, backend::Backend};

pub const LEARNING_RATE: f64 = 0.01;
pub const BETAS: [f64; 2] = [0.9, 0.999];
pub const EPSILON: f64 = 1e-8;
pub const DECAY: f64 = 0.01;
const STEP: i32 = 10;

/// Operations of AdamW for one weight: three for the first mean and four for the second, two corrections, a root, a sum, a
/// quotient, two products and two sums.
pub const ADAMW_FLOPS: u64 = 15;
/// Those of plain descent.
pub const SGD_FLOPS: u64 = 2;

/// What makes a mean over the steps so far of one that began with nothing.
pub fn correction(beta: f64) -> f64 {
    1.0 / (1.0 - beta.powi(STEP))
}

/// What kernels are told of AdamW.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub fn settings() -> calorimeter_kernels::Adamw {
    calorimeter_kernels::Adamw {
        learning_rate: LEARNING_RATE,
        betas: BETAS,
        corrections: BETAS.map(correction),
        epsilon: EPSILON,
        decay: DECAY,
    }
}

/// One weight with its moments after a step of AdamW.
pub fn exact_adamw(weight: f64, gradient: f64, [mean, square]: [f64; 2]) -> (f64, [f64; 2]) {
    let [first, second] = BETAS;
    let mean = first * mean + (1.0 - first) * gradient;
    let square = second * square + (1.0 - second) * gradient * gradient;
    let direction = mean * correction(first) / ((square * correction(second)).sqrt() + EPSILON);
    (weight - LEARNING_RATE * (direction + DECAY * weight), [mean, square])
}

/// One weight after a step of plain descent.
pub fn exact_sgd(weight: f64, gradient: f64) -> f64 {
    weight - LEARNING_RATE * gradient
}

/// A step: what becomes of weights by their gradient, and of their moments where the optimizer has some.
pub type Update<B> = fn(Tensor<B, 2>, Tensor<B, 2>, Option<[Tensor<B, 2>; 2]>) -> Vec<Tensor<B, 2>>;

/// A step by burn's operations.
pub fn update<B: Backend>(
    weight: Tensor<B, 2>,
    gradient: Tensor<B, 2>,
    moments: Option<[Tensor<B, 2>; 2]>,
) -> Vec<Tensor<B, 2>> {
    match moments {
        Some(moments) => adamw(weight, gradient, moments).into(),
        None => vec![sgd(weight, gradient)],
    }
}

/// All weights with their moments after a step of AdamW.
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
    let direction = mean.clone() * correction(first) / ((square.clone() * correction(second)).sqrt() + EPSILON);
    let weight = weight.clone() - (direction + weight * DECAY) * LEARNING_RATE;
    [weight.cast(dtype), mean, square]
}

/// All weights after a step of plain descent.
fn sgd<B: Backend>(weight: Tensor<B, 2>, gradient: Tensor<B, 2>) -> Tensor<B, 2> {
    let dtype = weight.dtype();
    let [weight, gradient] = [weight, gradient].map(|tensor| tensor.cast(DType::F32));
    (weight - gradient * LEARNING_RATE).cast(dtype)
}
