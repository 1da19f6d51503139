//! Sums and maxima of rows, with sixteen interleaved accumulators that fit a vector.

use super::pass::FloatElement;
use crate::host::float_simd::WIDTH;

/// Returns the sum of a function of each element.
#[inline(always)]
pub(super) fn sum<N: FloatElement>(x: &[N], term: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; WIDTH];
    let (chunks, rest) = x.as_chunks::<WIDTH>();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, &x)| *sum += term(x.to_f32()));
    }
    sums.iter_mut().zip(rest).for_each(|(sum, &x)| *sum += term(x.to_f32()));
    sums.iter().sum()
}

/// Returns the sum of a function of each pair of elements.
#[inline(always)]
pub(super) fn sum_of_pairs(x: &[f32], y: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0; WIDTH];
    let ((chunks, rest), (others, other_rest)) = (x.as_chunks::<WIDTH>(), y.as_chunks::<WIDTH>());
    for (x, y) in chunks.iter().zip(others) {
        sums.iter_mut().zip(x.iter().zip(y)).for_each(|(sum, (&x, &y))| *sum += term(x, y));
    }
    sums.iter_mut().zip(rest.iter().zip(other_rest)).for_each(|(sum, (&x, &y))| *sum += term(x, y));
    sums.iter().sum()
}

/// Returns the maximum, ignoring NaN.
#[inline(always)]
pub(super) fn max<N: FloatElement>(x: &[N]) -> f32 {
    let larger = |most: f32, x: f32| if x > most { x } else { most };
    let mut most = [f32::NEG_INFINITY; WIDTH];
    let (chunks, rest) = x.as_chunks::<WIDTH>();
    for chunk in chunks {
        most.iter_mut().zip(chunk).for_each(|(most, &x)| *most = larger(*most, x.to_f32()));
    }
    rest.iter().map(|&x| x.to_f32()).chain(most).fold(f32::NEG_INFINITY, larger)
}
