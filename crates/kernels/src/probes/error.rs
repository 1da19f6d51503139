//! Errors of probes.

#[cfg(feature = "cuda")]
use crate::native::NativeError;

/// Error from the creation, execution or check of a probe.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The buffer size is not a multiple of the access size, or exceeds the limit of the device.
    #[error("invalid probe buffer size {bytes}: expected a multiple of 16 up to {limit}")]
    BufferSize {
        /// Requested bytes.
        bytes: u64,
        /// Largest buffer of the device.
        limit: u64,
    },
    /// No buffer sets were requested.
    #[error("invalid number of buffer sets 0: expected at least 1")]
    NoSets,
    /// More steps than the kernel can count.
    #[error("invalid number of spin steps {steps}: expected at most {limit}")]
    TooManySteps {
        /// Requested steps.
        steps: u64,
        /// Maximum steps.
        limit: u64,
    },
    /// Host memory is exhausted.
    #[error("out of host memory: {bytes} bytes requested; use smaller buffers or fewer sets")]
    OutOfHostMemory {
        /// Requested bytes.
        bytes: u64,
    },
    /// The result is wrong or missing.
    #[error("wrong result of the {probe} probe: {found:#010x} instead of {expected:#010x} at word {word} of set {set}")]
    WrongResult {
        /// Name of the probe.
        probe: &'static str,
        /// Index of the buffer set.
        set: u32,
        /// Index of the first wrong 32-bit word.
        word: usize,
        /// Actual value.
        found: u32,
        /// Expected value.
        expected: u32,
    },
    /// CubeCL reported a failure of earlier work.
    #[cfg(feature = "cube")]
    #[error("CubeCL reports that {doing} failed: {status}")]
    Cube {
        /// Action, as a noun.
        doing: &'static str,
        /// Description by CubeCL.
        status: String,
    },
    /// A native kernel could not be prepared or run.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Native(#[from] NativeError),
}
