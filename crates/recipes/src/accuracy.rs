//! Error metrics of an approximation: SQNR, relative L2 error, maximum error and cosine.

use rayon::prelude::*;

/// Error of an approximation relative to the exact signal.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ErrorMetrics {
    /// Signal to quantization noise ratio in dB; infinite if there is no noise.
    pub sqnr_db: f64,
    /// Relative L2 error.
    pub rel_l2: f64,
    /// Largest absolute error of an element.
    pub max_abs: f64,
    /// Cosine similarity of signal and approximation.
    pub cosine: f64,
}

impl ErrorMetrics {
    /// Compares an approximation with the signal element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn compare<T: Copy + Into<f64> + Sync, U: Copy + Into<f64> + Sync>(signal: &[T], approximation: &[U]) -> Self {
        let (expected, found) = (signal.len(), approximation.len());
        assert_eq!(expected, found, "the signal has {expected} values, the approximation {found}");
        let parts = signal.par_chunks(CHUNK_LEN).zip(approximation.par_chunks(CHUNK_LEN));
        let parts: Vec<ErrorSums> = parts.map(|(signal, other)| ErrorSums::accumulate(signal, other)).collect();
        // Sequential reduction, so that every run gives identical bits.
        let ErrorSums { noise, power, other_power, dot, max_abs } =
            parts.into_iter().fold(ErrorSums::default(), ErrorSums::merge);
        // Without noise the error is zero, even if the signal is zero too.
        let ratio = if noise == 0.0 { 0.0 } else { (noise / power).sqrt() };
        let cosine = if noise == 0.0 { 1.0 } else { dot / (power * other_power).sqrt() };
        Self { sqnr_db: -20.0 * ratio.log10(), rel_l2: ratio, max_abs, cosine }
    }
}

/// Elements that one task reduces before the partial sums are merged.
const CHUNK_LEN: usize = 1 << 16;

/// Partial sums of the error metrics.
#[derive(Default)]
struct ErrorSums {
    noise: f64,
    power: f64,
    other_power: f64,
    dot: f64,
    max_abs: f64,
}

impl ErrorSums {
    fn accumulate<T: Copy + Into<f64>, U: Copy + Into<f64>>(signal: &[T], approximation: &[U]) -> Self {
        let mut sums = Self::default();
        for (&expected, &got) in signal.iter().zip(approximation) {
            let (expected, got): (f64, f64) = (expected.into(), got.into());
            let error = got - expected;
            sums.noise += error * error;
            sums.power += expected * expected;
            sums.other_power += got * got;
            sums.dot += got * expected;
            sums.max_abs = sums.max_abs.max(error.abs());
        }
        sums
    }

    fn merge(self, other: Self) -> Self {
        Self {
            noise: self.noise + other.noise,
            power: self.power + other.power,
            other_power: self.other_power + other.other_power,
            dot: self.dot + other.dot,
            max_abs: self.max_abs.max(other.max_abs),
        }
    }
}

/// Signal to quantization noise ratio in dB; infinite if there is no noise. 6 dB correspond to one bit.
///
/// ```
/// use calorimeter_recipes::{Dtype, Recipe, Weight, sqnr};
///
/// let weight = Weight::new(8, 256, (0..8 * 256).map(|i| (i as f32 * 0.37).sin()).collect(), Dtype::F32);
/// for name in ["int8wo", "int4wo-128", "mxfp4"] {
///     let quantized = name.parse::<Recipe>()?.quant_config(Dtype::F32, None)?.effective_weight(&weight)?;
///     println!("{name}: {:.1} dB", sqnr(weight.values(), quantized.values()));
/// }
/// assert_eq!(sqnr(&[1.0, -1.0], &[1.0, -1.0]), f64::INFINITY);
/// assert!((sqnr(&[1.0f32; 4], &[0.9f64; 4]) - 20.0).abs() < 1e-9);
/// # Ok::<(), calorimeter_recipes::RecipeError>(())
/// ```
///
/// # Panics
/// If the lengths differ.
pub fn sqnr<T: Copy + Into<f64> + Sync, U: Copy + Into<f64> + Sync>(signal: &[T], approximation: &[U]) -> f64 {
    ErrorMetrics::compare(signal, approximation).sqnr_db
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_approximation_has_infinite_sqnr() {
        for signal in [[1.0, -2.0], [0.0, 0.0]] {
            let accuracy = ErrorMetrics::compare(&signal, &signal);
            assert_eq!((accuracy.sqnr_db, accuracy.rel_l2, accuracy.cosine), (f64::INFINITY, 0.0, 1.0));
        }
        assert_eq!(sqnr(&[0.0], &[1.0]), f64::NEG_INFINITY);
    }

    #[test]
    #[should_panic = "2 values"]
    fn different_lengths_panic() {
        sqnr(&[1.0, 2.0], &[1.0]);
    }
}
