//! Gradients that are loud in some groups of rows, and in all others so quiet that no sum hears them: what a model's weights
//! are changed by then follows from the loud rows alone, which is what a reference can afford of a large model. No number is
//! zero, so that a device works as hard as on any other.

use crate::Matrix;
use crate::sample::spread;

/// Rows that are loud together: as many as share a scale at most, and more than know of each other in any model.
pub const GROUP: usize = 32;
/// How quiet the others are.
pub const QUIET: f32 = 1.0 / (1u32 << 24) as f32;
/// What is quieter than this beside the loudest number is not heard.
const HEARD: f32 = 1.0 / (1u32 << 12) as f32;

/// The loud rows, so many groups among so many rows.
pub fn of(rows: u64, groups: u64) -> Vec<usize> {
    let all = rows.div_ceil(GROUP as u64);
    rows_of(&spread(all, groups.min(all)), rows as usize)
}

/// The rows of groups.
pub fn rows_of(groups: &[usize], rows: usize) -> Vec<usize> {
    groups.iter().flat_map(|group| group * GROUP..((group + 1) * GROUP).min(rows)).collect()
}

/// The groups of a gradient that are loud.
pub fn groups_in(gradient: &Matrix) -> Vec<usize> {
    let largest = |values: &[f32]| values.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    let groups: Vec<f32> = gradient.values.chunks(GROUP * gradient.cols).map(largest).collect();
    let heard = HEARD * largest(&groups);
    (0..groups.len()).filter(|&group| groups[group] > heard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fill, Operand};
    use calorimeter_recipes::{Dtype, Element};

    #[test]
    fn loud_rows_are_found_again_in_what_was_drawn() {
        let bf16 = Element::Float(Dtype::Bf16);
        for (rows, groups) in [(1000, 3), (64, 2), (4096, 2), (10, 1), (33, 2)] {
            let gradient = Operand::normal(rows, 48, bf16).filled(Fill::SomeRows { edge: 0.1, groups });
            for matrix in [gradient.matrix(5), gradient.gate_matrix(5)] {
                let found = rows_of(&groups_in(&matrix), rows as usize);
                assert_eq!(found, of(rows, groups), "{rows} {groups}");
                assert!(matrix.values.iter().all(|value| *value != 0.0), "{rows} {groups}");
            }
        }
    }
}
