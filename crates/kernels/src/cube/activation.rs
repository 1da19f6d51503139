//! Functions of one number.

use cubecl::prelude::*;
use std::f32::consts::FRAC_1_SQRT_2;

/// A function of one number, as torch has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// x times the normal distribution function, by erf.
    Gelu,
    /// The same, by tanh.
    GeluTanh,
    /// x * sigmoid(x).
    Silu,
}

#[cube]
pub(super) fn apply<N: Size>(x: Vector<f32, N>, #[comptime] activation: Activation) -> Vector<f32, N> {
    match comptime!(activation) {
        Activation::Gelu => {
            let erf = (x * Vector::new(FRAC_1_SQRT_2)).erf();
            x * Vector::new(0.5) * (Vector::new(1.0) + erf)
        }
        // (1 + tanh(u)) / 2 is sigmoid(2 u), which takes no function that overflows.
        Activation::GeluTanh => {
            let twice = x * (Vector::new(1.595_769) + Vector::new(0.071_354_814) * x * x);
            x * sigmoid(twice)
        }
        Activation::Silu => silu(x),
    }
}

#[cube]
pub(super) fn silu<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    x * sigmoid(x)
}

/// 1 / (1 + exp(-x)), by the square of an inverse root: a division takes CUDA several times as many instructions.
#[cube]
fn sigmoid<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    // CubeCL 0.10 cannot negate a vector on CUDA.
    let root = (Vector::new(1.0) + (x * Vector::new(-1.0)).exp()).inverse_sqrt();
    root * root
}
