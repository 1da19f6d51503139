//! Rows with mean 0 and variance 1.
//!
//! Data flow: each thread takes whole rows, which stay in its cache while they are added up, added up again as squared
//! distances from the mean, and written. Traffic: x and y once. Roofline: the memory's.

use rayon::prelude::*;

/// What is added to a variance, so that rows of equal numbers have one.
const EPSILON: f32 = 1e-5;

/// Sums that are added to in turn, so that vectors can hold them.
const SUMS: usize = 16;

/// Computes `y = (x - mean) / sqrt(variance + 1e-5)` for each row of `k` numbers, all of it before it returns.
pub fn layer_norm(x: &[f32], k: usize, y: &mut [f32]) {
    y.par_chunks_mut(k).zip(x.par_chunks(k)).for_each(|(y, x)| {
        let mean = sum(x, |x| x) / k as f32;
        let variance = sum(x, |x| (x - mean) * (x - mean)) / k as f32;
        let inverse = 1.0 / (variance + EPSILON).sqrt();
        y.iter_mut().zip(x).for_each(|(y, x)| *y = (x - mean) * inverse);
    });
}

#[inline(always)]
fn sum(x: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; SUMS];
    let (chunks, rest) = x.as_chunks::<SUMS>();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, &x)| *sum += term(x));
    }
    sums.iter_mut().zip(rest).for_each(|(sum, &x)| *sum += term(x));
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_length_are_what_double_precision_makes_of_them() {
        for k in [1, 3, 17, 129, 1000] {
            let x: Vec<f32> = (0..3 * k).map(|i| ((i * 7919) % 1009) as f32 / 100.0 - 3.0).collect();
            let mut y = vec![f32::NAN; x.len()];
            layer_norm(&x, k, &mut y);
            for (x, y) in x.chunks(k).zip(y.chunks(k)) {
                let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
                let mean = x.iter().sum::<f64>() / k as f64;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / k as f64;
                for (x, &y) in x.iter().zip(y) {
                    let exact = (x - mean) / (variance + 1e-5).sqrt();
                    assert!((f64::from(y) - exact).abs() < 1e-5, "{k}: {y} for {exact}");
                }
            }
        }
    }
}
