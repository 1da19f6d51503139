//! What can go wrong with a probe.

#[cfg(feature = "cuda")]
use crate::native::NativeError;

/// Why a probe could not be made, did not run, or must not be believed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A buffer that cannot be moved in whole accesses, or that the device does not give.
    #[error("a probe's buffer must hold a multiple of 16 bytes, up to {limit} here, not {bytes}")]
    BufferSize {
        /// Bytes asked for.
        bytes: u64,
        /// The largest buffer of the device.
        limit: u64,
    },
    /// A rotation through no buffers.
    #[error("a probe needs at least one set of buffers")]
    NoSets,
    /// More steps than the kernel can count.
    #[error("a spin takes at most {limit} steps here, not {steps}")]
    TooManySteps {
        /// Steps asked for.
        steps: u64,
        /// The most there can be.
        limit: u64,
    },
    /// The host has no room for a buffer.
    #[error("{bytes} bytes of host memory could not be had; use smaller buffers or fewer sets")]
    OutOfHostMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// The device computed something else, or nothing.
    #[error("the {probe} probe left {found:#010x} instead of {expected:#010x} at word {word} of set {set}")]
    Wrong {
        /// Which probe.
        probe: &'static str,
        /// Which set of buffers.
        set: u32,
        /// Which 32-bit word of the result.
        word: usize,
        /// What was there.
        found: u32,
        /// What should have been.
        expected: u32,
    },
    /// CubeCL reports that earlier work failed.
    #[cfg(feature = "cube")]
    #[error("CubeCL reports that {doing} failed: {status}")]
    Cube {
        /// The action, as a noun.
        doing: &'static str,
        /// CubeCL's own description.
        status: String,
    },
    /// A native kernel could not be prepared or run.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Native(#[from] NativeError),
}
