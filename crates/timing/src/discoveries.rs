//! Many questions asked at once: which answers may be believed.

/// Which of these are discoveries, when at most this share of all discoveries may be false, on average. By the procedure of
/// Benjamini and Yekutieli, which holds however the questions depend on one another: cases of one run share its machine.
///
/// ```
/// use calorimeter_timing::discoveries;
///
/// // One in twenty looks like a discovery by chance alone: of four such questions none is one.
/// assert_eq!(discoveries(&[0.04, 0.03, 0.9, 0.5], 0.05), [false; 4]);
/// assert_eq!(discoveries(&[0.04, 0.0001, 0.9, 0.5], 0.05), [false, true, false, false]);
/// ```
pub fn discoveries(chances: &[f64], share: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|&a, &b| chances[a].total_cmp(&chances[b]));
    let harmonic: f64 = (1..=chances.len()).map(|rank| 1.0 / rank as f64).sum();
    let step = share / (chances.len() as f64 * harmonic);
    let last = order.iter().enumerate().rposition(|(rank, &index)| chances[index] <= step * (rank + 1) as f64);
    let mut found = vec![false; chances.len()];
    for &index in order.iter().take(last.map_or(0, |last| last + 1)) {
        found[index] = true;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_question_is_asked_at_the_share_itself() {
        assert_eq!(discoveries(&[0.05], 0.05), [true]);
        assert_eq!(discoveries(&[0.0501], 0.05), [false]);
        assert_eq!(discoveries(&[], 0.05), [false; 0]);
    }

    #[test]
    fn one_that_is_not_small_enough_alone_is_carried_by_others() {
        // Of two questions the first step is 0.05 / 2 / 1.5, the second twice that.
        assert_eq!(discoveries(&[0.02, 0.9], 0.05), [false, false]);
        assert_eq!(discoveries(&[0.02, 0.03], 0.05), [true, true]);
    }
}
