//! Functions of one number.

use cubecl::prelude::*;

/// A smooth function of one number, as torch has it. Models end with others too, and none with the second:
/// `calorimeter_case::Activation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SmoothActivation {
    /// x times the normal distribution function, by erf.
    Gelu,
    /// The same, by tanh.
    GeluTanh,
    /// x * sigmoid(x).
    Silu,
}

#[cube]
pub(super) fn apply<N: Size>(x: Vector<f32, N>, #[comptime] activation: SmoothActivation) -> Vector<f32, N> {
    match comptime!(activation) {
        SmoothActivation::Gelu => gelu(x),
        // (1 + tanh(u)) / 2 is sigmoid(2 u), which takes no function that overflows.
        SmoothActivation::GeluTanh => {
            let twice = x * (Vector::new(1.595_769) + Vector::new(0.071_354_814) * x * x);
            x * sigmoid(twice)
        }
        SmoothActivation::Silu => silu(x),
    }
}

/// x times the normal distribution function. Its two tails at |x| together are exp of a polynomial, which is off by less
/// than 2e-7: with CUDA's erf, of some 25 instructions, these are what bounds the kernel, not memory.
#[cube]
fn gelu<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    let a = x.abs();
    let power = a * Vector::new(-0.000_000_589_291_46) + Vector::new(0.000_010_207_747);
    let power = power * a + Vector::new(-0.000_046_374_476);
    let power = power * a + Vector::new(-0.000_293_010_32);
    let power = power * a + Vector::new(0.005_144_156_5);
    let power = power * a + Vector::new(-0.036_545_265);
    let power = power * a + Vector::new(-0.318_253_93);
    let power = power * a + Vector::new(-0.797_889_4);
    let tails = (power * a).exp();
    (x + a * (Vector::new(1.0) - tails)) * Vector::new(0.5)
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
