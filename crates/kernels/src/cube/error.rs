//! Why a kernel is not launched.

use crate::Dtype;

/// Operands that a kernel cannot take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CubeError {
    /// The device has no such elements.
    #[error("the device cannot store or convert {kind}; use f32, or a device that can")]
    Unsupported {
        /// The type of the elements.
        kind: Dtype,
    },
    /// A matrix larger than anything that can be addressed.
    #[error("{rows} rows of {cols} elements are more than memory can hold")]
    TooLarge {
        /// Its rows.
        rows: usize,
        /// Its columns.
        cols: usize,
    },
    /// Memory for less than the kernel would touch.
    #[error("`{operand}` has {has} bytes, and the kernel needs {needs}")]
    TooSmall {
        /// Which operand.
        operand: &'static str,
        /// Bytes that it needs.
        needs: u64,
        /// Bytes that it has.
        has: u64,
    },
    /// What was to be read could not be.
    #[error("the device does not answer: {why}")]
    Device {
        /// What the runtime says.
        why: String,
    },
}
