//! Tiny computations of known cost, with which a measuring tool tests itself and finds a device's peaks.
//!
//! ```
//! use calorimeter_kernels::probes::{HostProbes, Probe, ProbeError, Probes};
//!
//! fn main() -> Result<(), ProbeError> {
//!     let mut copy = HostProbes.copy(1 << 20, 2)?;
//!     copy.check()?;
//!     let start = std::time::Instant::now();
//!     copy.launch()?;
//!     copy.settle()?;
//!     println!("{:.1} GB/s", copy.bytes() as f64 / start.elapsed().as_nanos() as f64);
//!     Ok(())
//! }
//! ```

pub(crate) mod chain;
#[cfg(feature = "cube")]
mod cube;
mod error;
mod host;
#[cfg(feature = "cuda")]
mod native;
mod pattern;
mod rotation;
pub(crate) mod task;

#[cfg(feature = "cube")]
pub use cube::CubeProbes;
pub use error::ProbeError;
pub use host::HostProbes;
#[cfg(feature = "cuda")]
pub use native::NativeProbes;

/// A computation of known cost, with its memory.
pub trait Probe: Send {
    /// Enqueues one launch; on an asynchronous device it need not have run when this returns.
    fn launch(&mut self) -> Result<(), ProbeError>;
    /// Waits until everything launched has run.
    fn settle(&mut self) -> Result<(), ProbeError>;
    /// Launches once into every set of buffers, poisoned beforehand, and compares each word of the results.
    fn check(&mut self) -> Result<(), ProbeError>;
    /// Bytes that a launch moves: those read and written by a copy, those read by a read, none by a spin.
    fn bytes(&self) -> u64;
}

/// The probes of one device. Buffers hold multiples of 16 bytes.
pub trait Probes {
    /// A chain of exactly `steps` integer multiply-adds on one thread, each of which needs the one before.
    fn spin(&mut self, steps: u64) -> Result<Box<dyn Probe>, ProbeError>;
    /// A copy of `bytes` bytes by the whole device; each launch takes the next of `sets` pairs of buffers.
    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError>;
    /// A sum over `bytes` bytes by the whole device; each launch takes the next of `sets` buffers. For each 32 KiB that
    /// it reads it writes 4 bytes, which do not count.
    fn read(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError>;
}
