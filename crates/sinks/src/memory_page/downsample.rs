//! Downsampling of lines to screen resolution.

/// Keeps the first, minimum, maximum and last point of every time interval.
///
/// Visible maxima are preserved, and intervals join at the right height.
pub(super) fn downsample(line: &[(u64, u64)], end_ns: u64, intervals: usize) -> Vec<(u64, u64)> {
    if line.len() <= 4 * intervals {
        return line.to_vec();
    }
    let interval =
        |at_ns: u64| (u128::from(at_ns) * intervals as u128 / (u128::from(end_ns) + 1)).min(intervals as u128 - 1);
    let mut sampled = Vec::with_capacity(4 * intervals);
    for part in line.chunk_by(|a, b| interval(a.0) == interval(b.0)) {
        let by_value = |&index: &usize| part[index].1;
        let lowest = (0..part.len()).min_by_key(by_value).unwrap_or(0);
        let highest = (0..part.len()).max_by_key(by_value).unwrap_or(0);
        let mut indices = vec![0, lowest, highest, part.len() - 1];
        indices.sort_unstable();
        indices.dedup();
        sampled.extend(indices.into_iter().map(|index| part[index]));
    }
    sampled
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_stretch_keeps_its_ends_and_its_extremes(
            gaps_and_values in prop::collection::vec((0_u64..50, 0_u64..1_000), 1..400),
            intervals in 1_usize..30,
        ) {
            let mut at_ns = 0;
            let mut line = Vec::new();
            for (gap, value) in gaps_and_values {
                at_ns += gap;
                line.push((at_ns, value));
            }
            let sampled = downsample(&line, at_ns, intervals);
            prop_assert!(sampled.len() <= line.len().min(4 * intervals).max(1));
            prop_assert!(sampled.is_sorted_by_key(|point| point.0));
            let interval = |at: u64| at as u128 * intervals as u128 / (at_ns as u128 + 1);
            for part in line.chunk_by(|a, b| interval(a.0) == interval(b.0)) {
                let points: Vec<_> = sampled.iter().filter(|point| interval(point.0) == interval(part[0].0)).collect();
                prop_assert_eq!(points.iter().map(|point| point.1).max(), part.iter().map(|point| point.1).max());
                prop_assert_eq!(points.iter().map(|point| point.1).min(), part.iter().map(|point| point.1).min());
                prop_assert_eq!((points.first(), points.last()), (Some(&&part[0]), Some(&&part[part.len() - 1])));
            }
        }
    }
}
