//! Requested measurements from files, suites and calibrations. All of them produce [`Entry`] values, whose defaults
//! [`resolve`] fills in.
//!
//! Precedence, field by field: command line, entry, built-in default.

mod autotune;
mod compile_mode;
mod device_selection;
mod entry;
mod error;
mod factor;
mod limits;
mod overrides;
mod programs;
mod resolve;
mod resolved;
mod shard;
mod timing;
mod units;
mod word;

pub use autotune::{Autotune, TuningCacheMode};
pub use compile_mode::CompileMode;
pub use device_selection::{DeviceSelection, SelectionError};
pub use entry::{Entry, Origin, Size};
pub use error::ConfigError;
pub use factor::ScaleFactor;
pub(crate) use limits::{MAX_CASES, MAX_ENTRIES, MAX_LAUNCHES, MAX_WINDOWS};
pub use overrides::Overrides;
pub use programs::Programs;
pub use resolve::resolve;
pub use resolved::ResolvedEntry;
pub use shard::Shard;
pub use timing::Timing;
pub use units::{Fraction, HumanDuration};
pub(crate) use word::word;
