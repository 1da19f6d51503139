//! Student's t distribution.

use std::f64::consts::PI;

/// Two-sided 95 % critical values for 1, 2, … degrees of freedom.
const POINTS: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086,
];

/// Two-sided 95 % critical value; with more degrees of freedom than the table has, slightly conservative.
pub(crate) fn point(degrees: usize) -> f64 {
    POINTS[(degrees.max(1) - 1).min(POINTS.len() - 1)]
}

/// Probability beyond ±`t`, by the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
pub(crate) fn beyond(t: f64, degrees: usize) -> f64 {
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
    fn the_share_beyond_a_95_percent_point_is_5_percent() {
        for degrees in 1..=20 {
            let share = beyond(point(degrees), degrees);
            assert!((share - 0.05).abs() < 1e-4, "{degrees}: {share}");
        }
        // Tables give 3.365 and 3.169 for 2 % (5 degrees) and 1 % (10 degrees).
        assert!((beyond(3.169, 10) - 0.01).abs() < 1e-4 && (beyond(3.365, 5) - 0.02).abs() < 1e-4);
    }

    #[test]
    fn nothing_lies_beyond_the_end_and_everything_beyond_the_middle() {
        for degrees in 1..30 {
            assert_eq!((beyond(0.0, degrees), beyond(f64::INFINITY, degrees)), (1.0, 0.0), "{degrees}");
            assert!(beyond(1.0, degrees) > beyond(2.0, degrees), "{degrees}");
        }
    }
}
