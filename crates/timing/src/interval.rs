//! The median and its exact order-statistic interval: no distribution assumed, no random numbers.

/// A median with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The sample median.
    pub median: f64,
    /// The interval, absent below six samples, where no pair of order statistics covers 95 %.
    pub bounds: Option<(f64, f64)>,
}

impl Interval {
    /// The median and interval of unsorted samples; `None` when there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let median = middle(&sorted)?;
        let bounds = ranks(sorted.len()).map(|(lo, hi)| (sorted[lo - 1], sorted[hi - 1]));
        Some(Self { median, bounds })
    }
}

/// The median of unsorted samples; `None` when there are none.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    middle(&sorted)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    if n == 0 {
        return None;
    }
    Some(if n % 2 == 1 { sorted[n / 2] } else { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 })
}

/// Ranks, counted from 1, of the narrowest symmetric pair of order statistics that covers the median with 95 %.
fn ranks(n: usize) -> Option<(usize, usize)> {
    let mut probability = (-(n as f64) * std::f64::consts::LN_2).exp();
    // Beyond a thousand samples 2^-n underflows, and the normal approximation is exact to a rank.
    if n > 1000 {
        let lo = (n as f64 / 2.0 - 1.959_964 * (n as f64).sqrt() / 2.0).floor() as usize;
        return Some((lo, n + 1 - lo));
    }
    let mut below = 0.0;
    for rank in 0..n {
        below += probability;
        if below > 0.025 {
            return (rank > 0).then_some((rank, n + 1 - rank));
        }
        probability *= (n - rank) as f64 / (rank + 1) as f64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_are_the_tabulated_ones() {
        for (n, expected) in [
            (5, None),
            (6, Some((1, 6))),
            (15, Some((4, 12))),
            (30, Some((10, 21))),
            (100, Some((40, 61))),
            (1000, Some((469, 532))),
        ] {
            assert_eq!(ranks(n), expected, "n = {n}");
        }
    }

    #[test]
    fn the_normal_approximation_continues_the_exact_ranks() {
        let (lo, hi) = ranks(1001).unwrap();
        assert!((468..=470).contains(&lo) && lo + hi == 1002, "{lo} {hi}");
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval(samples in prop::collection::vec(-1e9f64..1e9, 1..200)) {
            let interval = Interval::of(&samples).unwrap();
            if let Some((lo, hi)) = interval.bounds {
                prop_assert!(lo <= interval.median && interval.median <= hi);
            }
        }

        #[test]
        fn order_does_not_matter(mut samples in prop::collection::vec(-1e9f64..1e9, 1..50)) {
            let before = Interval::of(&samples);
            samples.reverse();
            prop_assert_eq!(before, Interval::of(&samples));
        }
    }
}
