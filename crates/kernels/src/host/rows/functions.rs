//! Functions of one number in plain arithmetic and without branches, so that vectors can compute them. NaN stays NaN.

use core::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LOG2_E};

/// exp(x) within two units of the last place; beyond ±87 as at ±87.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Adding it leaves a whole number in the lowest bits.
    const WHOLE: f32 = 12_582_912.0;
    // ln 2 in two pieces, of which the first has few enough bits to be multiplied exactly.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // Of exp(r) = 1 + r + r² p(r) between ±ln 2 / 2, by Moshier's cephes.
    const P: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
    let x = if x > 87.0 { 87.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * LOG2_E + WHOLE;
    let whole = shifted - WHOLE;
    let r = x - whole * LN_2[0] - whole * LN_2[1];
    let mut p = P[0];
    p = p * r + P[1];
    p = p * r + P[2];
    p = p * r + P[3];
    p = p * r + P[4];
    p = p * r + P[5];
    let power = shifted.to_bits().wrapping_sub(WHOLE.to_bits()).wrapping_add(127) << 23;
    (p * r * r + r + 1.0) * f32::from_bits(power)
}

/// 1 / (1 + exp(-x)).
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// x sigmoid(x).
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// x Φ(x), within a few units of the last place also where Φ is next to nothing.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    // Of ln(erfc(z) exp(z²) / t) with t = 1 / (1 + z / 2), by Press and others, Numerical Recipes, section 6.2.
    const P: [f32; 10] = [
        0.170_872_77,
        -0.822_152_2,
        1.488_515_9,
        -1.135_204,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_7,
        -1.265_512_2,
    ];
    let z = x.abs() * FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let mut p = P[0];
    p = p * t + P[1];
    p = p * t + P[2];
    p = p * t + P[3];
    p = p * t + P[4];
    p = p * t + P[5];
    p = p * t + P[6];
    p = p * t + P[7];
    p = p * t + P[8];
    p = p * t + P[9];
    let half_of_rest = 0.5 * t * exp(p - z * z);
    let share = if x < 0.0 { half_of_rest } else { 1.0 - half_of_rest };
    x * share
}

/// x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    const SLOPE: f32 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
    // (1 + tanh u) / 2 is the sigmoid of 2u.
    x * sigmoid(2.0 * SLOPE * (x + 0.044715 * x * x * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(name: &str, ours: fn(f32) -> f32, exact: fn(f64) -> f64, allowed: f64) {
        for step in -40_000..=40_000 {
            let x = step as f32 / 500.0;
            let (ours, exact) = (f64::from(ours(x)), exact(f64::from(x)));
            assert!((ours - exact).abs() <= allowed * exact.abs() + 1e-30, "{name} of {x}: {ours:e} for {exact:e}");
        }
        assert!(ours(f32::NAN).is_nan(), "{name}");
    }

    #[test]
    fn functions_are_those_of_double_precision() {
        const UNIT: f64 = 1.0 / (1u64 << 24) as f64;
        near("exp", exp, f64::exp, 4.0 * UNIT);
        near("sigmoid", sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 6.0 * UNIT);
        near("silu", silu, |x| x / (1.0 + (-x).exp()), 6.0 * UNIT);
    }

    #[test]
    fn both_kinds_of_gelu_are_right_where_they_are_next_to_nothing_too() {
        // The exponent is rounded: its error is that of a number of up to so many units.
        for step in -900..=900 {
            let x = step as f32 / 100.0;
            let wide = f64::from(x);
            let exact = 0.5 * wide * libm::erfc(-wide * core::f64::consts::FRAC_1_SQRT_2);
            let error = (f64::from(gelu(x)) - exact).abs();
            assert!(error <= 4e-7 * (1.0 + wide * wide) * exact.abs(), "gelu of {x}: {error:e} beside {exact:e}");
            let inner = (2.0 / core::f64::consts::PI).sqrt() * (wide + 0.044715 * wide.powi(3));
            let exact = wide / (1.0 + (-2.0 * inner).exp());
            let error = (f64::from(gelu_tanh(x)) - exact).abs();
            assert!(error <= 4e-7 * (1.0 + inner.abs()) * exact.abs() + 1e-35, "gelu_tanh of {x}: {error:e}");
        }
        assert!(gelu(f32::NAN).is_nan() && gelu_tanh(f32::NAN).is_nan());
    }
}
