//! How far an approximation is from what it approximates.

/// How far numbers are from those that they stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Accuracy {
    /// Signal over noise in decibels; infinite where there is no noise.
    pub sqnr_db: f64,
    /// Relative error in the Euclidean norm.
    pub rel_l2: f64,
    /// The largest error of one element.
    pub max_abs: f64,
    /// Cosine of the angle between the two.
    pub cosine: f64,
}

impl Accuracy {
    /// Compares an approximation with the signal, number by number.
    ///
    /// # Panics
    /// If one has more numbers than the other.
    pub fn of<T: Copy + Into<f64>, U: Copy + Into<f64>>(signal: &[T], approximation: &[U]) -> Self {
        let (numbers, others) = (signal.len(), approximation.len());
        assert_eq!(numbers, others, "{others} numbers cannot stand for {numbers}");
        let (mut noise, mut power, mut other_power, mut dot, mut max_abs) = (0.0, 0.0, 0.0, 0.0, 0.0f64);
        for (&expected, &got) in signal.iter().zip(approximation) {
            let (expected, got): (f64, f64) = (expected.into(), got.into());
            let error = got - expected;
            noise += error * error;
            power += expected * expected;
            other_power += got * got;
            dot += got * expected;
            max_abs = max_abs.max(error.abs());
        }
        // Where nothing is expected and nothing came, there is no error.
        let ratio = if noise == 0.0 { 0.0 } else { (noise / power).sqrt() };
        let cosine = if noise == 0.0 { 1.0 } else { dot / (power * other_power).sqrt() };
        Self { sqnr_db: -20.0 * ratio.log10(), rel_l2: ratio, max_abs, cosine }
    }
}

/// The ratio of a signal to the noise that quantising it adds, in decibels; infinite where there is none. 6 dB are one bit.
///
/// ```
/// use calorimeter_recipes::{Dtype, Recipe, Weight, sqnr};
///
/// let weight = Weight::new(8, 256, (0..8 * 256).map(|i| (i as f32 * 0.37).sin()).collect(), Dtype::F32);
/// for name in ["int8wo", "int4wo-128", "mxfp4"] {
///     let quantised = name.parse::<Recipe>()?.treatment(Dtype::F32, None)?.effective_weight(&weight)?;
///     println!("{name}: {:.1} dB", sqnr(weight.values(), quantised.values()));
/// }
/// assert_eq!(sqnr(&[1.0, -1.0], &[1.0, -1.0]), f64::INFINITY);
/// assert!((sqnr(&[1.0f32; 4], &[0.9f64; 4]) - 20.0).abs() < 1e-9);
/// # Ok::<(), calorimeter_recipes::RecipeError>(())
/// ```
///
/// # Panics
/// If one has more numbers than the other.
pub fn sqnr<T: Copy + Into<f64>, U: Copy + Into<f64>>(signal: &[T], approximation: &[U]) -> f64 {
    Accuracy::of(signal, approximation).sqnr_db
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_noise_is_infinitely_far_below_the_signal_even_where_there_is_none() {
        for signal in [[1.0, -2.0], [0.0, 0.0]] {
            let accuracy = Accuracy::of(&signal, &signal);
            assert_eq!((accuracy.sqnr_db, accuracy.rel_l2, accuracy.cosine), (f64::INFINITY, 0.0, 1.0));
        }
        assert_eq!(sqnr(&[0.0], &[1.0]), f64::NEG_INFINITY);
    }

    #[test]
    #[should_panic = "1 numbers cannot stand for 2"]
    fn what_is_missing_is_no_approximation() {
        sqnr(&[1.0, 2.0], &[1.0]);
    }
}
