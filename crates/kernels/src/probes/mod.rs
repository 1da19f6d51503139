//! Small computations of known cost, for self-tests and for measuring the peaks of a device.
//!
//! ```
//! use calorimeter_kernels::probes::{HostProbes, Probe, ProbeError, Probes};
//!
//! fn main() -> Result<(), ProbeError> {
//!     let mut copy = HostProbes.copy(1 << 20, 2)?;
//!     copy.check()?;
//!     let start = std::time::Instant::now();
//!     copy.launch()?;
//!     copy.synchronize()?;
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
mod rotating_probe;
pub(crate) mod task;

#[cfg(feature = "cube")]
pub use cube::CubeProbes;
pub use error::ProbeError;
pub use host::HostProbes;
#[cfg(feature = "cuda")]
pub use native::NativeProbes;

/// Computation of known cost, with its buffers.
pub trait Probe: Send {
    /// Enqueues a launch; may return before it has executed.
    fn launch(&mut self) -> Result<(), ProbeError>;
    /// Waits for all launches.
    fn synchronize(&mut self) -> Result<(), ProbeError>;
    /// Poisons all outputs, launches once per buffer set, and compares every word of the results.
    fn check(&mut self) -> Result<(), ProbeError>;
    /// Bytes moved per launch: read and written by a copy, read by a read, none by a spin.
    fn bytes(&self) -> u64;
}

/// Probes of one device. Buffer sizes are multiples of 16 bytes.
pub trait Probes {
    /// Chain of exactly `steps` dependent integer multiply-adds on one thread.
    fn spin(&mut self, steps: u64) -> Result<Box<dyn Probe>, ProbeError>;
    /// Copy of `bytes` bytes by the whole device, rotating through `sets` pairs of buffers.
    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError>;
    /// Sum over `bytes` bytes by the whole device, rotating through `sets` buffers. Writes 4 uncounted bytes per 32
    /// KiB.
    fn read(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError>;
}
