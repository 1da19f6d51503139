//! Branch-free elementary functions that vectorize. NaN propagates.

use crate::host::float_simd::FloatSimd;
use core::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LOG2_E};

/// Rounding constant: adding it leaves the nearest integer plus the exponent bias in the lowest mantissa bits.
const ROUNDING_SHIFT: f32 = 12_582_912.0 + 127.0;

/// Returns 2 to the power of the integer in a shifted value.
#[inline(always)]
fn exp2_of_rounded(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits() << 23)
}

/// Evaluates a polynomial; coefficients are in order of descending powers.
#[inline(always)]
fn polynomial<L: FloatSimd, const N: usize>(lanes: L, x: f32, coefficients: [f32; N]) -> f32 {
    coefficients
        .into_iter()
        .reduce(|sum, coefficient| lanes.scalar_multiply_add(sum, x, coefficient))
        .unwrap_or_default()
}

/// exp(x) with an error of at most two ULP; clamped beyond ±87.
#[inline(always)]
pub(super) fn exp<L: FloatSimd>(lanes: L, x: f32) -> f32 {
    // ln 2 as a sum of two constants, the first short enough for exact products.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // Coefficients of p in exp(r) = 1 + r + r² p(r) for |r| ≤ ln 2 / 2, from Moshier's Cephes.
    const P: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let x = if x > 87.0 { 87.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = lanes.scalar_multiply_add(x, LOG2_E, ROUNDING_SHIFT);
    let whole = shifted - ROUNDING_SHIFT;
    let r = lanes.scalar_multiply_add(whole, -LN_2[1], lanes.scalar_multiply_add(whole, -LN_2[0], x));
    let p = polynomial(lanes, r, P);
    (lanes.scalar_multiply_add(p * r, r, r) + 1.0) * exp2_of_rounded(shifted)
}

/// exp(x) with a relative error of at most 2^-12, for results that are rounded to 16 bits. x < 87; 0 from -88 on.
#[inline(always)]
pub(super) fn coarse_exp<L: FloatSimd>(lanes: L, x: f32) -> f32 {
    power_of_two(lanes, x * LOG2_E, COARSE_EXP2)
}

/// 1 / (1 + exp(-x)).
#[inline(always)]
pub(super) fn sigmoid<L: FloatSimd>(lanes: L, x: f32) -> f32 {
    1.0 / (1.0 + exp(lanes, -x))
}

/// x sigmoid(x).
#[inline(always)]
pub(super) fn silu<L: FloatSimd>(lanes: L, x: f32) -> f32 {
    x / (1.0 + exp(lanes, -x))
}

/// x Φ(x), with an error of a few ULP even where Φ is tiny.
#[inline(always)]
pub(super) fn gelu<L: FloatSimd>(lanes: L, x: f32) -> f32 {
    const SHARE: [f32; 12] = [
        -6.241_775e-11,
        5.290_125e-10,
        7.506_371e-10,
        -1.826_828_6e-8,
        1.043_200_3e-7,
        -1.110_242_8e-6,
        1.189_159_4e-5,
        -1.057_274_5e-4,
        8.875_232_3e-4,
        -7.310_781e-3,
        -6.604_453_3e-1,
        -3.814_894,
    ];
    #[allow(clippy::approx_constant, reason = "fitted coefficient close to ln 2")]
    const POWER: [f32; 5] = [1.326_472_6e-3, 9.671_513e-3, 5.550_733_6e-2, 2.402_224_2e-1, 6.931_47e-1];
    subtract_tail(lanes, x, 4.5, SHARE, POWER)
}

/// x Φ(x) with a relative error of at most 2^-12 down to -5.5, for results that are rounded to 16 bits.
#[inline(always)]
pub(super) fn coarse_gelu<L: FloatSimd>(lanes: L, x: f32) -> f32 {
    const SHARE: [f32; 6] =
        [2.343_324e-5, -6.197_391e-4, 7.260_351_4e-3, -5.141_860_6e-2, -4.608_635_3e-1, -1.150_480_4];
    subtract_tail(lanes, x, 0.0, SHARE, COARSE_EXP2)
}

/// x Φ(x), computed as max(x, 0) - |x| tail(|x|), where the tail of the normal distribution beyond `a = |x|` is 2^(a
/// p(a - middle) - 1). `share` holds the coefficients of `p`; expanding around the middle of the fitted range reduces
/// rounding errors. Beyond the fitted range the tail falls faster than its approximation.
#[inline(always)]
fn subtract_tail<L: FloatSimd, const P: usize, const Q: usize>(
    lanes: L,
    x: f32,
    middle: f32,
    share: [f32; P],
    power: [f32; Q],
) -> f32 {
    let a = x.abs();
    // The tail is negligible from here on.
    let a = if a > 14.5 { 14.5 } else { a };
    let tail = power_of_two(lanes, lanes.scalar_multiply_add(polynomial(lanes, a - middle, share), a, -1.0), power);
    lanes.scalar_multiply_add(-a, tail, if x > 0.0 { x } else { 0.0 })
}

/// Coefficients of 2^r with a relative error of at most 2^-13.
const COARSE_EXP2: [f32; 3] = [5.500_893_3e-2, 2.422_109_7e-1, 6.932_829e-1];

/// 2^x for x < 127; 0 from -127 on. 2^r is 1 + r q(r) for |r| ≤ 1/2, where `q` holds the coefficients.
#[inline(always)]
fn power_of_two<L: FloatSimd, const N: usize>(lanes: L, x: f32, q: [f32; N]) -> f32 {
    let x = if x < -127.0 { -127.0 } else { x };
    let shifted = x + ROUNDING_SHIFT;
    let r = x - (shifted - ROUNDING_SHIFT);
    lanes.scalar_multiply_add(polynomial(lanes, r, q), r, 1.0) * exp2_of_rounded(shifted)
}

/// x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.
#[inline(always)]
pub(super) fn gelu_tanh<L: FloatSimd>(lanes: L, x: f32) -> f32 {
    const SLOPE: f32 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
    // (1 + tanh u) / 2 is the sigmoid of 2u.
    x * sigmoid(lanes, 2.0 * SLOPE * (x + 0.044715 * x * x * x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::float_isa::FloatIsa;
    use crate::host::float_simd::FloatTask;

    /// Runs a check with every supported instruction set.
    fn with_every_isa(check: impl FloatTask + Copy) {
        FloatIsa::available().into_iter().for_each(|set| set.run(check));
    }

    fn near(name: &str, ours: impl Fn(f32) -> f32, exact: fn(f64) -> f64, allowed: f64) {
        for step in -40_000..=40_000 {
            let x = step as f32 / 500.0;
            let (ours, exact) = (f64::from(ours(x)), exact(f64::from(x)));
            assert!(
                (ours - exact).abs() <= allowed * exact.abs() + 1e-30,
                "{name} of {x}: {ours:e} instead of {exact:e}"
            );
        }
        assert!(ours(f32::NAN).is_nan(), "{name}");
    }

    #[derive(Clone, Copy)]
    struct Exponentials;

    impl FloatTask for Exponentials {
        #[inline(always)]
        fn execute<L: FloatSimd>(self, lanes: L) {
            const UNIT: f64 = 1.0 / (1u64 << 24) as f64;
            near("exp", |x| exp(lanes, x), f64::exp, 4.0 * UNIT);
            for step in 0..=87_000 {
                let x = -(step as f32) / 1000.0;
                let exact = f64::from(x).exp();
                let error = (f64::from(coarse_exp(lanes, x)) - exact).abs();
                assert!(error <= 2f64.powi(-12) * exact, "coarse exp of {x}: error {error:e}, exact {exact:e}");
            }
            assert_eq!([-89.0, f32::NEG_INFINITY].map(|x| coarse_exp(lanes, x)), [0.0; 2]);
            assert!(coarse_exp(lanes, f32::NAN).is_nan());
            near("sigmoid", |x| sigmoid(lanes, x), |x| 1.0 / (1.0 + (-x).exp()), 6.0 * UNIT);
            near("silu", |x| silu(lanes, x), |x| x / (1.0 + (-x).exp()), 6.0 * UNIT);
        }
    }

    #[test]
    fn exponentials_match_double_precision() {
        with_every_isa(Exponentials);
    }

    #[derive(Clone, Copy)]
    struct Gelus;

    impl FloatTask for Gelus {
        #[inline(always)]
        fn execute<L: FloatSimd>(self, lanes: L) {
            // The error of the exponent is that of a rounded number of this magnitude. The fit ends at -9.
            for step in -4000..=4000 {
                let x = step as f32 / 100.0;
                let wide = f64::from(x);
                let exact = 0.5 * wide * libm::erfc(-wide * core::f64::consts::FRAC_1_SQRT_2);
                let error = (f64::from(gelu(lanes, x)) - exact).abs();
                let allowed = if x >= -9.0 { 4e-7 * (1.0 + wide * wide) * exact.abs() } else { 1.1e-18 };
                assert!(error <= allowed, "gelu of {x}: error {error:e}, exact {exact:e}");
                let error = (f64::from(coarse_gelu(lanes, x)) - exact).abs();
                let allowed = if x > -5.5 { 2f64.powi(-12) * exact.abs() } else { 1e-7 };
                assert!(error <= allowed, "coarse gelu of {x}: error {error:e}, exact {exact:e}");
                let inner = (2.0 / core::f64::consts::PI).sqrt() * (wide + 0.044715 * wide.powi(3));
                let exact = wide / (1.0 + (-2.0 * inner).exp());
                let error = (f64::from(gelu_tanh(lanes, x)) - exact).abs();
                assert!(error <= 4e-7 * (1.0 + inner.abs()) * exact.abs() + 1e-35, "gelu_tanh of {x}: {error:e}");
            }
            assert!([gelu, coarse_gelu, gelu_tanh].iter().all(|function| function(lanes, f32::NAN).is_nan()));
            for function in [gelu, coarse_gelu] {
                assert_eq!([1e30, -40.0].map(|x| function(lanes, x).abs()), [1e30, 0.0]);
            }
        }
    }

    #[test]
    fn gelu_variants_match_in_the_tails() {
        with_every_isa(Gelus);
    }
}
