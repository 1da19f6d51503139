//! Lines with no more points than a screen can show.

/// Keeps of every stretch of time the first, the lowest, the highest and the last value, each at its own moment. So no
/// maximum is missing that could be seen, and a stretch is entered and left at the right height.
pub(super) fn thin(line: &[(u64, u64)], end_ns: u64, stretches: usize) -> Vec<(u64, u64)> {
    if line.len() <= 4 * stretches {
        return line.to_vec();
    }
    let stretch =
        |at_ns: u64| (u128::from(at_ns) * stretches as u128 / (u128::from(end_ns) + 1)).min(stretches as u128 - 1);
    let mut thinned = Vec::with_capacity(4 * stretches);
    for part in line.chunk_by(|a, b| stretch(a.0) == stretch(b.0)) {
        let by_value = |&index: &usize| part[index].1;
        let lowest = (0..part.len()).min_by_key(by_value).unwrap_or(0);
        let highest = (0..part.len()).max_by_key(by_value).unwrap_or(0);
        let mut kept = vec![0, lowest, highest, part.len() - 1];
        kept.sort_unstable();
        kept.dedup();
        thinned.extend(kept.into_iter().map(|index| part[index]));
    }
    thinned
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_stretch_keeps_its_ends_and_its_extremes(
            gaps_and_values in prop::collection::vec((0_u64..50, 0_u64..1_000), 1..400),
            stretches in 1_usize..30,
        ) {
            let mut at_ns = 0;
            let mut line = Vec::new();
            for (gap, value) in gaps_and_values {
                at_ns += gap;
                line.push((at_ns, value));
            }
            let thinned = thin(&line, at_ns, stretches);
            prop_assert!(thinned.len() <= line.len().min(4 * stretches).max(1));
            prop_assert!(thinned.is_sorted_by_key(|point| point.0));
            let stretch = |at: u64| at as u128 * stretches as u128 / (at_ns as u128 + 1);
            for part in line.chunk_by(|a, b| stretch(a.0) == stretch(b.0)) {
                let kept: Vec<_> = thinned.iter().filter(|point| stretch(point.0) == stretch(part[0].0)).collect();
                prop_assert_eq!(kept.iter().map(|point| point.1).max(), part.iter().map(|point| point.1).max());
                prop_assert_eq!(kept.iter().map(|point| point.1).min(), part.iter().map(|point| point.1).min());
                prop_assert_eq!((kept.first(), kept.last()), (Some(&&part[0]), Some(&&part[part.len() - 1])));
            }
        }
    }
}
