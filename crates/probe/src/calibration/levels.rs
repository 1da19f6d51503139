//! Memory hierarchy levels: plateaus in the bandwidth of copies of increasing size.

use serde::{Deserialize, Serialize};

/// Plateau: range of working sets with about equal bandwidth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryLevel {
    /// Smallest working set in bytes.
    pub from_bytes: u64,
    /// Largest working set in bytes.
    pub to_bytes: u64,
    /// Median bandwidth in GB/s of the points close to the fastest one.
    pub gbps: f64,
    /// Number of sizes. A single one at the end may be noise.
    pub points: u32,
    /// `cache`, `memory`, or `cache or memory` if the sizes do not exceed the last-level cache by enough.
    pub kind: String,
}

/// A level ends where the bandwidth drops by this factor between consecutive sizes.
const LEVEL_DROP: f64 = 1.2;

/// Splits points of working set and bandwidth, sorted by size, into plateaus. A rise does not end a level, because
/// small copies are launch-bound.
pub(super) fn memory_levels(points: &[(u64, f64)], cache_bytes: Option<u64>) -> Vec<MemoryLevel> {
    let smooth = smoothed_rates(points);
    let mut levels = Vec::new();
    let mut start = 0;
    for index in 0..points.len() {
        let last = index + 1 == points.len();
        if last || smooth[index] >= LEVEL_DROP * smooth[index + 1] {
            levels.push(memory_level(&points[start..=index], cache_bytes));
            start = index + 1;
        }
    }
    levels
}

/// Median filter of width 3, which removes single outliers and preserves steps.
fn smoothed_rates(points: &[(u64, f64)]) -> Vec<f64> {
    let rate = |index: usize| points[index].1;
    (0..points.len())
        .map(|index| match index {
            0 => rate(0),
            _ if index + 1 == points.len() => rate(index),
            _ => median(vec![rate(index - 1), rate(index), rate(index + 1)]),
        })
        .collect()
}

fn memory_level(points: &[(u64, f64)], cache_bytes: Option<u64>) -> MemoryLevel {
    let best = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let near: Vec<f64> = points.iter().map(|point| point.1).filter(|&rate| rate * LEVEL_DROP >= best).collect();
    let (from_bytes, to_bytes) = (points[0].0, points[points.len() - 1].0);
    let kind = match cache_bytes {
        Some(cache) if from_bytes >= 4 * cache => "memory",
        Some(cache) if to_bytes <= cache => "cache",
        _ => "cache or memory",
    };
    MemoryLevel { from_bytes, to_bytes, gbps: median(near), points: points.len() as u32, kind: kind.into() }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rates: &[f64]) -> Vec<(u32, f64)> {
        let points: Vec<(u64, f64)> = rates.iter().enumerate().map(|(i, &rate)| (1 << (15 + i), rate)).collect();
        memory_levels(&points, None).iter().map(|level| (level.points, level.gbps)).collect()
    }

    #[test]
    fn steps_separate_levels_and_slopes_do_not() {
        for (rates, expected) in [
            (&[][..], &[][..]),
            (&[100.0], &[(1, 100.0)]),
            (&[100.0, 101.0, 99.0, 100.0], &[(4, 100.0)]),
            (&[400.0, 400.0, 200.0, 200.0, 100.0, 100.0, 20.0, 20.0], &[(2, 400.0), (2, 200.0), (2, 100.0), (2, 20.0)]),
            // Launch-bound at first.
            (&[10.0, 40.0, 150.0, 160.0, 50.0, 50.0], &[(4, 160.0), (2, 50.0)]),
            // Single outliers, high or low.
            (&[100.0, 100.0, 60.0, 100.0, 100.0], &[(5, 100.0)]),
            (&[100.0, 100.0, 150.0, 100.0, 100.0], &[(5, 150.0)]),
            (&[100.0, 95.0, 90.0, 85.0, 80.0], &[(5, 95.0)]),
        ] {
            assert_eq!(found(rates), expected, "{rates:?}");
        }
    }

    #[test]
    fn small_noise_adds_no_levels() {
        let noise = [1.05, 0.95, 1.0, 0.97, 1.04];
        let rates: Vec<f64> =
            [800.0, 300.0, 90.0, 15.0].iter().flat_map(|rate| noise.map(|noise| rate * noise)).collect();
        assert_eq!(found(&rates).iter().map(|level| level.0).collect::<Vec<_>>(), [5, 5, 5, 5]);
    }

    #[test]
    fn memory_levels_start_well_beyond_the_cache() {
        let points: Vec<(u64, f64)> = [(1, 100.0), (2, 100.0), (10, 50.0), (12, 50.0), (40, 10.0), (80, 10.0)].into();
        let kinds = |cache| memory_levels(&points, cache).into_iter().map(|level| level.kind).collect::<Vec<_>>();
        assert_eq!(kinds(Some(10)), ["cache", "cache or memory", "memory"]);
        assert_eq!(kinds(None), ["cache or memory"; 3]);
    }
}
