//! Student's t distribution.

use std::f64::consts::PI;

/// Two-sided 95 % critical values for 1, 2, … degrees of freedom.
const QUANTILES_975: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086,
];

/// Two-sided 95 % critical value; with more degrees of freedom than the table has, slightly conservative.
pub(crate) fn critical_value(degrees: usize) -> f64 {
    QUANTILES_975[(degrees.max(1) - 1).min(QUANTILES_975.len() - 1)]
}

/// Probability beyond ±`t`, by the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
pub(crate) fn two_sided_tail(t: f64, degrees: usize) -> f64 {
    let angle = (t.abs() / (degrees as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    // Sums every second power of the cosine with its coefficient.
    let sum = |first: f64, start: usize| {
        let (mut term, mut sum) = (first, 0.0);
        for power in (start..degrees.saturating_sub(1)).step_by(2) {
            sum += term;
            term *= cos * cos * (power + 1) as f64 / (power + 2) as f64;
        }
        sum
    };
    let within = if degrees.is_multiple_of(2) { sin * sum(1.0, 0) } else { 2.0 / PI * (angle + sin * sum(cos, 1)) };
    (1.0 - within).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_matches_critical_values() {
        for degrees in 1..=20 {
            let share = two_sided_tail(critical_value(degrees), degrees);
            assert!((share - 0.05).abs() < 1e-4, "{degrees}: {share}");
        }
        // Tables give 3.365 and 3.169 for 2 % (5 degrees) and 1 % (10 degrees).
        assert!((two_sided_tail(3.169, 10) - 0.01).abs() < 1e-4 && (two_sided_tail(3.365, 5) - 0.02).abs() < 1e-4);
    }

    #[test]
    fn tail_limits_are_zero_and_one() {
        for degrees in 1..30 {
            assert_eq!((two_sided_tail(0.0, degrees), two_sided_tail(f64::INFINITY, degrees)), (1.0, 0.0), "{degrees}");
            assert!(two_sided_tail(1.0, degrees) > two_sided_tail(2.0, degrees), "{degrees}");
        }
    }
}
