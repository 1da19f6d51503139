//! Element-wise activations.

use cubecl::prelude::*;

/// Smooth activation as in PyTorch. `calorimeter_case::Activation` has more functions, but not
/// [`SmoothActivation::GeluTanh`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SmoothActivation {
    /// x Φ(x) with the normal distribution function Φ, by erf.
    Gelu,
    /// GELU, approximated by tanh.
    GeluTanh,
    /// x * sigmoid(x).
    Silu,
}

#[cube]
pub(super) fn apply<N: Size>(x: Vector<f32, N>, #[comptime] activation: SmoothActivation) -> Vector<f32, N> {
    match comptime!(activation) {
        SmoothActivation::Gelu => gelu(x),
        // (1 + tanh(u)) / 2 is sigmoid(2 u), which cannot overflow.
        SmoothActivation::GeluTanh => {
            let twice = x * (Vector::new(1.595_769) + Vector::new(0.071_354_814) * x * x);
            x * sigmoid(twice)
        }
        SmoothActivation::Silu => silu(x),
    }
}

/// x Φ(x). The tail at |x| is exp of a polynomial with an error below 2e-7. CUDA's erf has about 25 instructions, which
/// would make the kernel compute-bound.
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

/// 1 / (1 + exp(-x)), as the square of an inverse square root: a CUDA division takes several times as many
/// instructions.
#[cube]
fn sigmoid<N: Size>(x: Vector<f32, N>) -> Vector<f32, N> {
    // CubeCL 0.10 cannot negate a vector on CUDA.
    let root = (Vector::new(1.0) + (x * Vector::new(-1.0)).exp()).inverse_sqrt();
    root * root
}
