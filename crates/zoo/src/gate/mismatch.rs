//! Why an output is wrong.

use super::Part;

/// Why an output is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Not the size it should have.
    #[error("the output has {got} values instead of {expected}")]
    Size {
        /// Values found.
        got: usize,
        /// Values expected.
        expected: usize,
    },
    /// Not a number, infinite, or never written: outputs are filled with NaN before the run.
    #[error("{count} values are not finite; the first is {value} at row {row}, column {col}")]
    NotFinite {
        /// Row of the first.
        row: usize,
        /// Column of the first.
        col: usize,
        /// The first.
        value: f32,
        /// How many there are.
        count: usize,
    },
    /// Too far from the reference in one place.
    #[error(
        "{count} of {compared} compared values are wrong; the first, at row {row}, column {col}, is {got:e} instead of {expected:e}"
    )]
    Element {
        /// Row of the first.
        row: usize,
        /// Column of the first.
        col: usize,
        /// What it is.
        got: f64,
        /// What it should be.
        expected: f64,
        /// How many there are.
        count: usize,
        /// How many were compared.
        compared: usize,
    },
    /// Too large or too small throughout, as by a wrong scale.
    #[error("{part} is {slope:.5} times what it should be, more than {limit:.1e} from 1")]
    Bias {
        /// Of what.
        part: Part,
        /// The least-squares slope on the reference.
        slope: f64,
        /// How far from one it may be.
        limit: f64,
    },
    /// Wrong where it was not compared value by value.
    #[error("{part} is wrong: under random signs its values add up to {got:e} instead of {expected:e}")]
    Sum {
        /// Of what.
        part: Part,
        /// What its values add up to.
        got: f64,
        /// What they should.
        expected: f64,
    },
    /// Too far from the reference overall.
    #[error("the relative error is {got:.2e}, above {limit:.2e}")]
    Norm {
        /// What it is.
        got: f64,
        /// What it may be.
        limit: f64,
    },
}
