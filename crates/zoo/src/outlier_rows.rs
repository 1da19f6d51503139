//! Gradients in which a few groups of rows dominate and all other rows are scaled by 2^-24.
//!
//! The weight update of a large model then depends on the outlier rows only, so that a reference in double precision is
//! affordable. No element is zero, so that the device does the work of ordinary data.

use crate::Matrix;
use crate::sample::spread_indices;

/// Rows per group: at least the rows that share a scale, and more than the rows that depend on each other in any model.
pub(crate) const GROUP_ROWS: usize = 32;
/// Factor of all rows outside the outlier groups.
pub(crate) const ATTENUATION: f32 = 1.0 / (1u32 << 24) as f32;
/// Groups below this share of the largest magnitude are not outliers.
const DETECTION_THRESHOLD: f32 = 1.0 / (1u32 << 12) as f32;

/// Returns the indices of `groups` outlier groups among `rows` rows.
pub(crate) fn select_rows(rows: u64, groups: u64) -> Vec<usize> {
    let all = rows.div_ceil(GROUP_ROWS as u64);
    rows_in_groups(&spread_indices(all, groups.min(all)), rows as usize)
}

/// Returns the row indices of the given groups.
pub(crate) fn rows_in_groups(groups: &[usize], rows: usize) -> Vec<usize> {
    groups.iter().flat_map(|group| group * GROUP_ROWS..((group + 1) * GROUP_ROWS).min(rows)).collect()
}

/// Finds the outlier groups of a gradient.
pub(crate) fn find_groups(gradient: &Matrix) -> Vec<usize> {
    let largest = |values: &[f32]| values.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    let groups: Vec<f32> = gradient.values.chunks(GROUP_ROWS * gradient.cols).map(largest).collect();
    let heard = DETECTION_THRESHOLD * largest(&groups);
    (0..groups.len()).filter(|&group| groups[group] > heard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fill, Operand};
    use calorimeter_recipes::{Dtype, Element};

    #[test]
    fn outlier_rows_are_found_in_random_gradients() {
        let bf16 = Element::Float(Dtype::Bf16);
        for (rows, groups) in [(1000, 3), (64, 2), (4096, 2), (10, 1), (33, 2)] {
            let gradient = Operand::normal(rows, 48, bf16).with_fill(Fill::OutlierRows { bound: 0.1, groups });
            for matrix in [gradient.matrix(5), gradient.gate_matrix(5)] {
                let found = rows_in_groups(&find_groups(&matrix), rows as usize);
                assert_eq!(found, select_rows(rows, groups), "{rows} {groups}");
                assert!(matrix.values.iter().all(|value| *value != 0.0), "{rows} {groups}");
            }
        }
    }
}
