//! Reasons for which an output fails the gate.

use super::CheckedPart;

/// Reason for which an output fails the gate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Wrong number of outputs.
    #[error("expected {expected} outputs, got {got}")]
    OutputCount {
        /// Outputs found.
        got: usize,
        /// Outputs expected.
        expected: usize,
    },
    /// Wrong size.
    #[error("the output has {got} values instead of {expected}")]
    Size {
        /// Values found.
        got: usize,
        /// Values expected.
        expected: usize,
    },
    /// NaN, infinite or never written: outputs are filled with NaN before the run.
    #[error("{count} values are not finite; the first is {value} at row {row}, column {col}")]
    NotFinite {
        /// Row of the first.
        row: usize,
        /// Column of the first.
        col: usize,
        /// First non-finite value.
        value: f32,
        /// Number of non-finite values.
        count: usize,
    },
    /// Elements outside the tolerance.
    #[error(
        "{count} of {compared} compared values are wrong; the first, at row {row}, column {col}, is {got:e} instead of {expected:e}"
    )]
    Element {
        /// Row of the first.
        row: usize,
        /// Column of the first.
        col: usize,
        /// Computed value.
        got: f64,
        /// Reference.
        expected: f64,
        /// Number of wrong values.
        count: usize,
        /// Number of compared values.
        compared: usize,
    },
    /// Scaled by a factor other than one, as by a wrong scale.
    #[error("{part} is scaled by {slope:.5}, more than {limit:.1e} from 1")]
    Bias {
        /// Affected part.
        part: CheckedPart,
        /// Least-squares slope on the reference.
        slope: f64,
        /// Allowed deviation from one.
        limit: f64,
    },
    /// Wrong signed sum, which covers elements outside the sample.
    #[error("{part} is wrong: its signed checksum is {got:e} instead of {expected:e}")]
    Sum {
        /// Affected row or column.
        part: CheckedPart,
        /// Signed sum of the output.
        got: f64,
        /// Expected signed sum.
        expected: f64,
    },
    /// Relative L2 error outside the tolerance.
    #[error("the relative error is {got:.2e}, above {limit:.2e}")]
    Norm {
        /// Relative L2 error.
        got: f64,
        /// Maximum.
        limit: f64,
    },
}
