//! How far an approximation is from what it approximates.

use rayon::prelude::*;

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
    pub fn of<T: Copy + Into<f64> + Sync, U: Copy + Into<f64> + Sync>(signal: &[T], approximation: &[U]) -> Self {
        let (numbers, others) = (signal.len(), approximation.len());
        assert_eq!(numbers, others, "{others} numbers cannot stand for {numbers}");
        let parts = signal.par_chunks(PART).zip(approximation.par_chunks(PART));
        let parts: Vec<Sums> = parts.map(|(signal, other)| Sums::of(signal, other)).collect();
        // One part after the other, so that every run gives the same bits.
        let Sums { noise, power, other_power, dot, max_abs } = parts.into_iter().fold(Sums::default(), Sums::and);
        // Where nothing is expected and nothing came, there is no error.
        let ratio = if noise == 0.0 { 0.0 } else { (noise / power).sqrt() };
        let cosine = if noise == 0.0 { 1.0 } else { dot / (power * other_power).sqrt() };
        Self { sqnr_db: -20.0 * ratio.log10(), rel_l2: ratio, max_abs, cosine }
    }
}

/// Numbers that are added up together before the sums of all are.
const PART: usize = 1 << 16;

/// What is added up over numbers and what stands for them.
#[derive(Default)]
struct Sums {
    noise: f64,
    power: f64,
    other_power: f64,
    dot: f64,
    max_abs: f64,
}

impl Sums {
    fn of<T: Copy + Into<f64>, U: Copy + Into<f64>>(signal: &[T], approximation: &[U]) -> Self {
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

    fn and(self, other: Self) -> Self {
        Self {
            noise: self.noise + other.noise,
            power: self.power + other.power,
            other_power: self.other_power + other.other_power,
            dot: self.dot + other.dot,
            max_abs: self.max_abs.max(other.max_abs),
        }
    }
}

/// The ratio of a signal to the noise that quantizing it adds, in decibels; infinite where there is none. 6 dB are one bit.
///
/// ```
/// use calorimeter_recipes::{Dtype, Recipe, Weight, sqnr};
///
/// let weight = Weight::new(8, 256, (0..8 * 256).map(|i| (i as f32 * 0.37).sin()).collect(), Dtype::F32);
/// for name in ["int8wo", "int4wo-128", "mxfp4"] {
///     let quantized = name.parse::<Recipe>()?.treatment(Dtype::F32, None)?.effective_weight(&weight)?;
///     println!("{name}: {:.1} dB", sqnr(weight.values(), quantized.values()));
/// }
/// assert_eq!(sqnr(&[1.0, -1.0], &[1.0, -1.0]), f64::INFINITY);
/// assert!((sqnr(&[1.0f32; 4], &[0.9f64; 4]) - 20.0).abs() < 1e-9);
/// # Ok::<(), calorimeter_recipes::RecipeError>(())
/// ```
///
/// # Panics
/// If one has more numbers than the other.
pub fn sqnr<T: Copy + Into<f64> + Sync, U: Copy + Into<f64> + Sync>(signal: &[T], approximation: &[U]) -> f64 {
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
