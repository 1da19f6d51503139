//! Telemetry of a device during measurements: clocks, power, temperature, throttling, energy, other processes.
//!
//! A [`Source`] reads the sensors of one device without changing its settings; a [`Sampler`] samples it in the
//! background. Values that a device, driver or permission does not provide are absent, never zero. Only a [`ClockLock`]
//! changes a setting.
//!
//! ```
//! use calorimeter_timing::telemetry::{Sampler, now, processor};
//! use std::time::Duration;
//!
//! let sampler = Sampler::start(processor(), Duration::from_millis(100))?;
//! let start = now();
//! // ... a round of windows ...
//! sampler.sample();
//! let samples = sampler.samples_since(start);
//! let throttled = samples.iter().flat_map(|sample| &sample.throttle).any(|reason| reason.requires_repeat());
//! println!("measure again: {throttled}");
//! # Ok::<(), std::io::Error>(())
//! ```

mod caches;
mod clock_lock;
mod counters;
mod files;
#[cfg(feature = "nvml")]
mod nvml;
mod processor;
mod sampler;
mod source;
mod throttle;

pub use caches::last_level_cache;
pub use clock_lock::{ClockLock, LockedClock};
pub use counters::{CounterValues, Counters};
#[cfg(feature = "nvml")]
pub use nvml::{nvml, nvml_lock};
pub use processor::processor;
pub use sampler::Sampler;
pub use source::{Sample, Source, now};
pub use throttle::Throttle;
