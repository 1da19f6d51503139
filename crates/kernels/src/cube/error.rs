//! Errors of CubeCL kernel launches.

use crate::Dtype;
use crate::layer::Rejection;

/// Error from the operands or the device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CubeError {
    /// The device does not support the dtype.
    #[error("the device does not support {kind}; use f32 or another device")]
    Unsupported {
        /// Dtype.
        kind: Dtype,
    },
    /// The matrix exceeds the address space.
    #[error("{rows} rows of {cols} elements exceed the address space")]
    TooLarge {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },
    /// A buffer is smaller than the range that the kernel accesses.
    #[error("buffer `{operand}` holds {has} bytes, but the kernel needs {needs}")]
    TooSmall {
        /// Name of the operand.
        operand: &'static str,
        /// Required bytes.
        needs: u64,
        /// Bytes of the buffer.
        has: u64,
    },
    /// A buffer starts at an address that rules out the vector accesses of the kernel.
    #[error("buffer `{operand}` does not start at a multiple of 16 bytes, as the kernel needs")]
    Misaligned {
        /// Name of the operand.
        operand: &'static str,
    },
    /// An operand is missing, or does not match the prepared layer.
    #[error("operand `{operand}` is missing, or does not match the prepared layer in format, size or presence")]
    OtherLayer {
        /// Name of the operand.
        operand: &'static str,
    },
    /// No kernel computes the layer.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// A result could not be read.
    #[error("reading a result failed: {why}")]
    Device {
        /// Description by the runtime.
        why: String,
    },
}
