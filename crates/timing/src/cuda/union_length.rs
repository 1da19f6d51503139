//! Total length of overlapping intervals.

/// Length of the union of intervals, given as start and end.
pub(super) fn union_length(mut intervals: Vec<(u64, u64)>) -> u64 {
    intervals.sort_unstable();
    let (mut total, mut covered) = (0, 0);
    for (start, end) in intervals {
        total += end.saturating_sub(start.max(covered));
        covered = covered.max(end);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gaps_are_excluded_and_overlaps_merged() {
        for (intervals, expected) in [
            (vec![], 0),
            (vec![(10, 20)], 10),
            (vec![(10, 20), (30, 35)], 15),
            (vec![(30, 35), (10, 20)], 15),
            (vec![(10, 20), (15, 25)], 15),
            (vec![(10, 40), (15, 25), (20, 45)], 35),
            (vec![(10, 20), (20, 30)], 20),
            (vec![(10, 20), (10, 20)], 10),
        ] {
            assert_eq!(union_length(intervals.clone()), expected, "{intervals:?}");
        }
    }

    proptest! {
        #[test]
        fn it_is_the_number_of_covered_nanoseconds(intervals in prop::collection::vec((0u64..60, 0u64..12), 0..12)) {
            let intervals: Vec<_> = intervals.into_iter().map(|(start, length)| (start, start + length)).collect();
            let covered = (0..80).filter(|t| intervals.iter().any(|(start, end)| (start..end).contains(&t))).count();
            prop_assert_eq!(union_length(intervals), covered as u64);
        }
    }
}
