//! Multiple testing: control of the false discovery rate.

/// Selects discoveries with a false discovery rate of at most `share`, by the procedure of Benjamini and Yekutieli. It
/// holds under arbitrary dependence between tests: cases of one run share a machine.
///
/// ```
/// use calorimeter_timing::discoveries;
///
/// // One in twenty looks like a discovery by chance: among four such tests none is.
/// assert_eq!(discoveries(&[0.04, 0.03, 0.9, 0.5], 0.05), [false; 4]);
/// assert_eq!(discoveries(&[0.04, 0.0001, 0.9, 0.5], 0.05), [false, true, false, false]);
/// ```
pub fn discoveries(p_values: &[f64], share: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let harmonic: f64 = (1..=p_values.len()).map(|rank| 1.0 / rank as f64).sum();
    let step = share / (p_values.len() as f64 * harmonic);
    let last = order.iter().enumerate().rposition(|(rank, &index)| p_values[index] <= step * (rank + 1) as f64);
    let mut discovered = vec![false; p_values.len()];
    for &index in order.iter().take(last.map_or(0, |last| last + 1)) {
        discovered[index] = true;
    }
    discovered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_test_uses_the_share_itself() {
        assert_eq!(discoveries(&[0.05], 0.05), [true]);
        assert_eq!(discoveries(&[0.0501], 0.05), [false]);
        assert_eq!(discoveries(&[], 0.05), [false; 0]);
    }

    #[test]
    fn discoveries_use_the_largest_passing_rank() {
        // For two tests the first threshold is 0.05 / 2 / 1.5, the second twice that.
        assert_eq!(discoveries(&[0.02, 0.9], 0.05), [false, false]);
        assert_eq!(discoveries(&[0.02, 0.03], 0.05), [true, true]);
    }
}
