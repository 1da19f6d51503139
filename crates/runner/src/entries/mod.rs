//! Requested measurements from files, suites and calibrations. All of them produce [`Entry`]s, whose defaults
//! [`resolve`] fills in.
//!
//! Precedence, field by field: command line, entry, built-in default.

mod autotune;
mod compile_mode;
mod entry;
mod error;
mod factor;
mod most;
mod overrides;
mod programs;
mod resolve;
mod resolved;
mod shard;
mod timing;
mod units;
mod wanted;
mod word;

pub use autotune::{Autotune, TuningResults};
pub use compile_mode::CompileMode;
pub use entry::{Entry, Origin, Size};
pub use error::ConfigError;
pub use factor::Factor;
pub(crate) use most::{MOST_CASES, MOST_ENTRIES, MOST_LAUNCHES, MOST_WINDOWS};
pub use overrides::Overrides;
pub use programs::Programs;
pub use resolve::resolve;
pub use resolved::ResolvedEntry;
pub use shard::Shard;
pub use timing::Timing;
pub use units::{Share, Span};
pub use wanted::Wanted;
pub(crate) use word::word;
