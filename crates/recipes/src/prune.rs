//! Magnitude pruning of weights.

use crate::{RecipeError, Sparsity, Weight};
use rayon::prelude::*;

/// Checks that a weight of this size can be pruned; the error names a supported size.
pub(crate) fn check_size(sparsity: Sparsity, n: usize, k: usize) -> Result<(), RecipeError> {
    let unsupported = |text: String| Err(RecipeError::Unsupported(text));
    match sparsity {
        Sparsity::SemiStructured if !k.is_multiple_of(4) => {
            unsupported(format!("{sparsity} needs k to be a multiple of 4; it is {k}"))
        }
        Sparsity::Block { block_size: side, .. }
            if !(n.is_multiple_of(side.into()) && k.is_multiple_of(side.into())) =>
        {
            unsupported(format!("{sparsity} needs n and k to be multiples of {side}; they are {n} and {k}"))
        }
        Sparsity::SemiStructured | Sparsity::Block { .. } => Ok(()),
    }
}

/// Sets the smallest values of a weight to zero, or the blocks with the smallest sums of magnitudes.
pub fn prune(sparsity: Sparsity, weight: &Weight) -> Weight {
    let k = weight.k();
    let mut values = weight.values().to_vec();
    match sparsity {
        Sparsity::Block { block_size: side, .. } => {
            let side = usize::from(side);
            values.par_chunks_mut(side * k).for_each(|rows| {
                let kept = retained_blocks(sparsity, rows, k);
                for row in rows.chunks_mut(k) {
                    let blocks = row.chunks_mut(side).enumerate();
                    blocks.filter(|(block, _)| !kept.contains(block)).for_each(|(_, values)| values.fill(0.0));
                }
            });
        }
        Sparsity::SemiStructured => values.par_chunks_mut(k).for_each(|row| row.chunks_mut(4).for_each(prune_2to4)),
    }
    Weight::new(weight.n(), k, values, weight.dtype())
}

/// Returns the ascending indices of the nonzero blocks of a row of blocks. Every row of blocks has an equal number, so
/// that rows of blocks form one batch.
pub(crate) fn retained_blocks(sparsity: Sparsity, rows: &[f32], k: usize) -> Vec<usize> {
    let (Sparsity::Block { block_size, .. }, Some(count)) = (sparsity, sparsity.retained_blocks_per_row(k)) else {
        return Vec::new();
    };
    let side = usize::from(block_size);
    let sum = |block: usize| -> f64 {
        let values = rows.chunks(k).flat_map(|row| &row[block * side..][..side]);
        values.map(|x| f64::from(x.abs())).sum()
    };
    let mut blocks: Vec<(f64, usize)> = (0..k / side).map(|block| (sum(block), block)).collect();
    blocks.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut kept: Vec<usize> = blocks.into_iter().take(count).map(|(_, block)| block).collect();
    kept.sort_unstable();
    kept
}

/// Sets the two smallest of four values to zero; among equal values the first.
fn prune_2to4(values: &mut [f32]) {
    let mut order = [0, 1, 2, 3];
    order.sort_by(|&a, &b| values[a].abs().total_cmp(&values[b].abs()));
    values[order[0]] = 0.0;
    values[order[1]] = 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;

    fn weight(n: usize, k: usize) -> Weight {
        let values = (0..n * k).map(|i| ((i * 7919 % 1009) as f32 - 504.0) / 97.0).collect();
        Weight::new(n, k, values, Dtype::F32)
    }

    #[test]
    fn semi_structured_keeps_two_largest_of_four() {
        let (dense, pruned) = (weight(6, 24), prune(Sparsity::SemiStructured, &weight(6, 24)));
        for (before, after) in dense.values().chunks(4).zip(pruned.values().chunks(4)) {
            let kept: Vec<f32> = after.iter().copied().filter(|&x| x != 0.0).collect();
            assert_eq!(kept.len(), 2);
            let dropped = before.iter().filter(|x| !kept.contains(x)).map(|x| x.abs()).fold(0.0, f32::max);
            assert!(kept.iter().all(|x| x.abs() >= dropped));
        }
        let mut equal = [1.0, -1.0, 1.0, 1.0];
        prune_2to4(&mut equal);
        assert_eq!(equal, [0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn block_sparsity_reaches_requested_level() {
        let sparsity = Sparsity::Block { percent: 75, block_size: 4 };
        let pruned = prune(sparsity, &weight(8, 32));
        for rows in pruned.values().chunks(4 * 32) {
            let zero = |block: usize| rows.chunks(32).all(|row| row[block * 4..][..4].iter().all(|&x| x == 0.0));
            assert_eq!((0..8).filter(|&block| zero(block)).count(), 6);
        }
        let dense = weight(8, 32);
        assert!(pruned.values().iter().zip(dense.values()).all(|(&after, &before)| after == 0.0 || after == before));
    }

    #[test]
    fn unsupported_sizes_are_rejected() {
        for (sparsity, n, k) in [(Sparsity::SemiStructured, 8, 30), (Sparsity::DEFAULT_BLOCK, 64, 100)] {
            assert!(matches!(check_size(sparsity, n, k), Err(RecipeError::Unsupported(_))), "{sparsity}");
        }
        assert!(check_size(Sparsity::DEFAULT_BLOCK, 128, 64).is_ok());
    }
}
