//! Functions of one number without branches, so that vectors can compute them. NaN stays NaN.

use crate::host::lanes::Lanes;
use core::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LOG2_E};

/// Adding it leaves a whole number in the lowest bits, and with it the bias of an exponent.
const BIASED: f32 = 12_582_912.0 + 127.0;

/// 2 to the power of the whole number that was left so.
#[inline(always)]
fn whole_power(shifted: f32) -> f32 {
    f32::from_bits(shifted.to_bits() << 23)
}

/// The first coefficient is that of the highest power.
#[inline(always)]
fn polynomial<L: Lanes, const N: usize>(lanes: L, x: f32, coefficients: [f32; N]) -> f32 {
    coefficients.into_iter().reduce(|sum, coefficient| lanes.fused(sum, x, coefficient)).unwrap_or_default()
}

/// exp(x) within two units of the last place; beyond ±87 as at ±87.
#[inline(always)]
pub fn exp<L: Lanes>(lanes: L, x: f32) -> f32 {
    // ln 2 in two pieces, of which the first has few enough bits to be multiplied exactly.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // Of exp(r) = 1 + r + r² p(r) between ±ln 2 / 2, by Moshier's cephes.
    const P: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let x = if x > 87.0 { 87.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = lanes.fused(x, LOG2_E, BIASED);
    let whole = shifted - BIASED;
    let r = lanes.fused(whole, -LN_2[1], lanes.fused(whole, -LN_2[0], x));
    let p = polynomial(lanes, r, P);
    (lanes.fused(p * r, r, r) + 1.0) * whole_power(shifted)
}

/// exp(x) within 2^-12 of itself, for what is rounded to 16 bits: of numbers below 87, and 0 from -88 on.
#[inline(always)]
pub fn coarse_exp<L: Lanes>(lanes: L, x: f32) -> f32 {
    power_of_two(lanes, x * LOG2_E, COARSE_POWER)
}

/// 1 / (1 + exp(-x)).
#[inline(always)]
pub fn sigmoid<L: Lanes>(lanes: L, x: f32) -> f32 {
    1.0 / (1.0 + exp(lanes, -x))
}

/// x sigmoid(x).
#[inline(always)]
pub fn silu<L: Lanes>(lanes: L, x: f32) -> f32 {
    x / (1.0 + exp(lanes, -x))
}

/// x Φ(x), within a few units of the last place also where Φ is next to nothing.
#[inline(always)]
pub fn gelu<L: Lanes>(lanes: L, x: f32) -> f32 {
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
    #[allow(clippy::approx_constant, reason = "fitted with the others, it is not quite the logarithm of two")]
    const POWER: [f32; 5] = [1.326_472_6e-3, 9.671_513e-3, 5.550_733_6e-2, 2.402_224_2e-1, 6.931_47e-1];
    less_its_tail(lanes, x, 4.5, SHARE, POWER)
}

/// The same within 2^-12 of itself down to -5.5: for what is rounded to 16 bits.
#[inline(always)]
pub fn coarse_gelu<L: Lanes>(lanes: L, x: f32) -> f32 {
    const SHARE: [f32; 6] =
        [2.343_324e-5, -6.197_391e-4, 7.260_351_4e-3, -5.141_860_6e-2, -4.608_635_3e-1, -1.150_480_4];
    less_its_tail(lanes, x, 0.0, SHARE, COARSE_POWER)
}

/// x Φ(x), which is x less its share that lies in the tail of a normal distribution beyond `a = |x|`, or less the whole of it. The tail
/// is 2 to the power of `a p(a - middle) - 1`, where `p` has the first coefficients: powers of distances from the middle of what it
/// was fitted to lose less to rounding. Beyond, the tail falls faster.
#[inline(always)]
fn less_its_tail<L: Lanes, const P: usize, const Q: usize>(
    lanes: L,
    x: f32,
    middle: f32,
    share: [f32; P],
    power: [f32; Q],
) -> f32 {
    let a = x.abs();
    // There and beyond nothing is left of it.
    let a = if a > 14.5 { 14.5 } else { a };
    let tail = power_of_two(lanes, lanes.fused(polynomial(lanes, a - middle, share), a, -1.0), power);
    lanes.fused(-a, tail, if x > 0.0 { x } else { 0.0 })
}

/// What makes a power of two within 2^-13 of itself.
const COARSE_POWER: [f32; 3] = [5.500_893_3e-2, 2.422_109_7e-1, 6.932_829e-1];

/// 2 to the power of x, which is below 127; 0 from -127 on. 2^r is 1 + r q(r) between ±1/2, where `q` has the coefficients.
#[inline(always)]
fn power_of_two<L: Lanes, const N: usize>(lanes: L, x: f32, q: [f32; N]) -> f32 {
    let x = if x < -127.0 { -127.0 } else { x };
    let shifted = x + BIASED;
    let r = x - (shifted - BIASED);
    lanes.fused(polynomial(lanes, r, q), r, 1.0) * whole_power(shifted)
}

/// x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.
#[inline(always)]
pub fn gelu_tanh<L: Lanes>(lanes: L, x: f32) -> f32 {
    const SLOPE: f32 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
    // (1 + tanh u) / 2 is the sigmoid of 2u.
    x * sigmoid(lanes, 2.0 * SLOPE * (x + 0.044715 * x * x * x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::float_set::FloatSet;
    use crate::host::lanes::FloatJob;

    /// Checks with every set of instructions that is here.
    fn with_every_set(check: impl FloatJob + Copy) {
        FloatSet::here().into_iter().for_each(|set| set.run(check));
    }

    fn near(name: &str, ours: impl Fn(f32) -> f32, exact: fn(f64) -> f64, allowed: f64) {
        for step in -40_000..=40_000 {
            let x = step as f32 / 500.0;
            let (ours, exact) = (f64::from(ours(x)), exact(f64::from(x)));
            assert!((ours - exact).abs() <= allowed * exact.abs() + 1e-30, "{name} of {x}: {ours:e} for {exact:e}");
        }
        assert!(ours(f32::NAN).is_nan(), "{name}");
    }

    #[derive(Clone, Copy)]
    struct Exponentials;

    impl FloatJob for Exponentials {
        #[inline(always)]
        fn on<L: Lanes>(self, lanes: L) {
            const UNIT: f64 = 1.0 / (1u64 << 24) as f64;
            near("exp", |x| exp(lanes, x), f64::exp, 4.0 * UNIT);
            for step in 0..=87_000 {
                let x = -(step as f32) / 1000.0;
                let exact = f64::from(x).exp();
                let error = (f64::from(coarse_exp(lanes, x)) - exact).abs();
                assert!(error <= 2f64.powi(-12) * exact, "coarse exp of {x}: {error:e} beside {exact:e}");
            }
            assert_eq!([-89.0, f32::NEG_INFINITY].map(|x| coarse_exp(lanes, x)), [0.0; 2]);
            assert!(coarse_exp(lanes, f32::NAN).is_nan());
            near("sigmoid", |x| sigmoid(lanes, x), |x| 1.0 / (1.0 + (-x).exp()), 6.0 * UNIT);
            near("silu", |x| silu(lanes, x), |x| x / (1.0 + (-x).exp()), 6.0 * UNIT);
        }
    }

    #[test]
    fn functions_are_those_of_double_precision() {
        with_every_set(Exponentials);
    }

    #[derive(Clone, Copy)]
    struct Gelus;

    impl FloatJob for Gelus {
        #[inline(always)]
        fn on<L: Lanes>(self, lanes: L) {
            // The exponent is rounded: its error is that of a number of up to so many units. What is fitted ends at -9.
            for step in -4000..=4000 {
                let x = step as f32 / 100.0;
                let wide = f64::from(x);
                let exact = 0.5 * wide * libm::erfc(-wide * core::f64::consts::FRAC_1_SQRT_2);
                let error = (f64::from(gelu(lanes, x)) - exact).abs();
                let allowed = if x >= -9.0 { 4e-7 * (1.0 + wide * wide) * exact.abs() } else { 1.1e-18 };
                assert!(error <= allowed, "gelu of {x}: {error:e} beside {exact:e}");
                let error = (f64::from(coarse_gelu(lanes, x)) - exact).abs();
                let allowed = if x > -5.5 { 2f64.powi(-12) * exact.abs() } else { 1e-7 };
                assert!(error <= allowed, "coarse gelu of {x}: {error:e} beside {exact:e}");
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
    fn all_kinds_of_gelu_are_right_where_they_are_next_to_nothing_too() {
        with_every_set(Gelus);
    }
}
