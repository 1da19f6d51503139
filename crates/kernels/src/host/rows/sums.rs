//! Sums and largest numbers of rows, by sixteen that are added to in turn, so that vectors can hold them.

use super::pass::Number;
use crate::host::lanes::WIDTH;

/// The sum of a term of each number.
#[inline(always)]
pub fn sum<N: Number>(x: &[N], term: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; WIDTH];
    let (chunks, rest) = x.as_chunks::<WIDTH>();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, &x)| *sum += term(x.wide()));
    }
    sums.iter_mut().zip(rest).for_each(|(sum, &x)| *sum += term(x.wide()));
    sums.iter().sum()
}

/// The same of pairs of numbers.
#[inline(always)]
pub fn sum_of_pairs(x: &[f32], y: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0; WIDTH];
    let ((chunks, rest), (others, other_rest)) = (x.as_chunks::<WIDTH>(), y.as_chunks::<WIDTH>());
    for (x, y) in chunks.iter().zip(others) {
        sums.iter_mut().zip(x.iter().zip(y)).for_each(|(sum, (&x, &y))| *sum += term(x, y));
    }
    sums.iter_mut().zip(rest.iter().zip(other_rest)).for_each(|(sum, (&x, &y))| *sum += term(x, y));
    sums.iter().sum()
}

/// The largest number; one that is none is not looked at.
#[inline(always)]
pub fn largest<N: Number>(x: &[N]) -> f32 {
    let larger = |most: f32, x: f32| if x > most { x } else { most };
    let mut most = [f32::NEG_INFINITY; WIDTH];
    let (chunks, rest) = x.as_chunks::<WIDTH>();
    for chunk in chunks {
        most.iter_mut().zip(chunk).for_each(|(most, &x)| *most = larger(*most, x.wide()));
    }
    rest.iter().map(|&x| x.wide()).chain(most).fold(f32::NEG_INFINITY, larger)
}
