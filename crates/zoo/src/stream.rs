//! Counter-based random numbers: each value depends on seed and index only.
//!
//! Any thread or device computes identical bits, because only integer operations and single IEEE operations are used.

use rayon::prelude::*;
use std::f64::consts::{PI, SQRT_2};
use std::sync::LazyLock;

/// Distribution of random values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Distribution {
    /// Standard normal, up to 6.3 standard deviations.
    Normal,
    /// Uniform between two bounds.
    Uniform(f32, f32),
    /// Integers from 0 to one below this value.
    IntegersBelow(u32),
}

/// Random values of one seed, addressed by index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RandomStream {
    distribution: Distribution,
    key: u64,
}

/// Values that one task computes.
const CHUNK_LEN: usize = 1 << 14;

impl RandomStream {
    /// Stream of a seed.
    pub(crate) fn new(seed: u64, distribution: Distribution) -> Self {
        Self { distribution, key: mix(seed) }
    }

    /// Computes the first `count` values.
    pub(crate) fn first_values(&self, count: usize) -> Vec<f32> {
        let mut values = vec![0.0; count];
        let pieces = values.par_chunks_mut(CHUNK_LEN).enumerate();
        pieces.for_each(|(piece, values)| self.fill((piece * CHUNK_LEN) as u64, values));
        values
    }

    /// Computes values from index `first` on.
    pub(crate) fn fill(&self, first: u64, values: &mut [f32]) {
        let each = values.iter_mut().zip(first..).map(|(value, index)| (value, self.random_bits(index)));
        match self.distribution {
            Distribution::Normal => {
                let quantiles = &*QUANTILES;
                each.for_each(|(value, bits)| *value = normal(bits, quantiles));
            }
            Distribution::Uniform(from, to) => {
                let width = to - from;
                // 24 bits are exact in f32.
                let unit = |bits: u64| (bits >> 40) as f32 * (1.0 / (1u32 << 24) as f32);
                each.for_each(|(value, bits)| *value = (from + width * unit(bits)).min(to));
            }
            Distribution::IntegersBelow(end) => {
                each.for_each(|(value, bits)| *value = (((bits >> 32) * u64::from(end)) >> 32) as f32);
            }
        }
    }

    /// Distribution and key, for the device implementation.
    #[cfg(feature = "native")]
    pub(crate) fn distribution_and_key(&self) -> (Distribution, u64) {
        (self.distribution, self.key)
    }

    fn random_bits(&self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_mul(GOLDEN_GAMMA)))
    }
}

const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Step of SplitMix64.
pub(crate) fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(GOLDEN_GAMMA);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Octaves of the tail probability: each holds as many values as all octaves beyond it.
const OCTAVES: u32 = 32;
/// Segments of an octave; values are uniform within a segment.
const SEGMENTS: u32 = 32;

/// Start and slope of each segment of the normal quantile function, with the slope per 2^-24 of a segment.
///
/// Octaves are ordered from the center outwards, the segments of an octave inwards.
pub(crate) static QUANTILES: LazyLock<[[f32; 2]; (OCTAVES * SEGMENTS) as usize]> = LazyLock::new(|| {
    let mut quantiles = [[0.0; 2]; (OCTAVES * SEGMENTS) as usize];
    let mut inner = 0.0;
    for octave in 0..OCTAVES {
        for segment in (0..SEGMENTS).rev() {
            let share = (1.0 + f64::from(segment) / f64::from(SEGMENTS)) / 2f64.powi(octave as i32 + 1);
            let outer = quantile(share, inner);
            let slope = (inner - outer) / f64::from(1u32 << 24);
            quantiles[(octave * SEGMENTS + segment) as usize] = [outer as f32, slope as f32];
            inner = outer;
        }
    }
    quantiles
});

/// Normal quantile: the distance from zero that a share of values exceeds.
///
/// Newton's method from `inner`, slightly below the solution; its steps never overshoot.
fn quantile(share: f64, inner: f64) -> f64 {
    let step = |x: f64| {
        let density = (2.0 / PI).sqrt() * libm::exp(-x * x / 2.0);
        x + (libm::erfc(x / SQRT_2) - share) / density
    };
    (0..8).fold(inner, |x, _| step(x))
}

fn normal(bits: u64, quantiles: &[[f32; 2]]) -> f32 {
    let rest = bits << 1;
    let octave = rest.leading_zeros().min(OCTAVES - 1);
    let below = rest << (octave + 1);
    let [from, slope] = quantiles[(octave * SEGMENTS) as usize + (below >> 59) as usize];
    let size = from + slope * (below << 5 >> 40) as f32;
    f32::from_bits(size.to_bits() | (bits >> 63 << 31) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_independent_of_range() {
        for law in [Distribution::Normal, Distribution::Uniform(-0.5, 2.0), Distribution::IntegersBelow(10)] {
            let stream = RandomStream::new(7, law);
            let all = stream.first_values(CHUNK_LEN * 2 + 3);
            let mut some = [0.0; 100];
            stream.fill(CHUNK_LEN as u64 - 50, &mut some);
            assert_eq!(some, all[CHUNK_LEN - 50..CHUNK_LEN + 50], "{law:?}");
            assert_ne!(some, all[..100]);
            assert_ne!(RandomStream::new(8, law).first_values(100), all[..100]);
        }
    }

    /// Each within five standard errors of the normal distribution.
    #[test]
    fn normal_values_have_expected_moments_and_tails() {
        let count = 1 << 22;
        let values = RandomStream::new(1, Distribution::Normal).first_values(count);
        let mean = |of: &dyn Fn(f64) -> f64| values.iter().map(|&x| of(x.into())).sum::<f64>() / count as f64;
        let error = |variance: f64| 5.0 * (variance / count as f64).sqrt();
        assert!(mean(&|x| x).abs() < error(1.0));
        assert!((mean(&|x| x * x) - 1.0).abs() < error(2.0));
        assert!(mean(&|x| x.powi(3)).abs() < error(15.0));
        assert!((mean(&|x| x.powi(4)) - 3.0).abs() < error(96.0));
        for beyond in [0.1, 0.5, 1.0, 2.0, 3.0, 4.0] {
            let share = libm::erfc(beyond / SQRT_2);
            let found = mean(&|x| f64::from(x.abs() > beyond));
            assert!((found - share).abs() < error(share), "{beyond}: {found} for {share}");
        }
        let neighbors = values.windows(2).map(|pair| f64::from(pair[0]) * f64::from(pair[1])).sum::<f64>();
        assert!((neighbors / count as f64).abs() < error(1.0));
        let largest = values.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
        assert!((4.8..6.3).contains(&largest), "{largest}");
    }

    #[test]
    fn quantile_segments_are_contiguous() {
        let reach = |at: usize| QUANTILES[at][0] + QUANTILES[at][1] * (1u32 << 24) as f32;
        for at in 0..QUANTILES.len() {
            let begins = |at: usize| QUANTILES[at][0];
            let inner = match (at / SEGMENTS as usize, at % SEGMENTS as usize + 1 == SEGMENTS as usize) {
                (_, false) => begins(at + 1),
                (0, true) => 0.0,
                (octave, true) => begins((octave - 1) * SEGMENTS as usize),
            };
            assert!((reach(at) - inner).abs() < 1e-6, "{at}");
        }
        let last = QUANTILES[((OCTAVES - 1) * SEGMENTS) as usize][0];
        assert!((libm::erfc(f64::from(last) / SQRT_2) * 2f64.powi(32) - 1.0).abs() < 1e-4, "{last}");
    }

    #[test]
    fn uniform_values_fill_their_bounds() {
        for (from, to) in [(-0.5, 2.0), (0.1, 0.3), (-1e-3, 1e-3)] {
            let values = RandomStream::new(3, Distribution::Uniform(from, to)).first_values(100_000);
            let (low, high) = values.iter().fold((to, from), |(low, high), &x| (x.min(low), x.max(high)));
            assert!(low >= from && high <= to && high - low > 0.999 * (to - from), "{low} {high}");
        }
        let values = RandomStream::new(3, Distribution::IntegersBelow(10)).first_values(100_000);
        for digit in 0..10 {
            let found = values.iter().filter(|&&value| value == digit as f32).count();
            assert!((9_500..10_500).contains(&found), "{digit}: {found}");
        }
    }

    /// Fixed values, so that no release changes the inputs unnoticed.
    #[test]
    fn random_values_are_stable() {
        let of = |law| RandomStream::new(42, law).first_values(3).into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(of(Distribution::Normal), [1053726622, 3185813426, 1024208621]);
        assert_eq!(of(Distribution::Uniform(0.0, 1.0)), [1051706356, 1064610769, 1056506574]);
    }
}
