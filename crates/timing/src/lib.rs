#![doc = include_str!("../README.md")]

// Alias of this crate, so that code can move between crates without changes to its paths.
extern crate self as calorimeter_timing;

mod across;
mod alone;
mod arm;
mod calibrate;
mod change;
mod closure;
mod common_shift;
mod compare;
mod discoveries;
mod durable;
mod energy;
mod estimate;
mod failure;
#[cfg(test)]
mod honesty;
mod host;
mod interval;
mod lane;
mod mock;
mod observer;
mod options;
mod paired;
mod rounds;
mod series;
mod silence;
mod stop_rule;
mod stopwatch;
mod student;
mod suite;
mod wall_clock;
mod warm_up;
mod written;

#[cfg(feature = "criterion")]
mod criterion_clock;
#[cfg(feature = "cubecl")]
mod timestamps;

#[cfg(feature = "cuda")]
pub mod cuda;
pub mod memory;
#[cfg(feature = "nvtx")]
pub mod nvtx;
pub mod telemetry;
pub mod trace;

// Crates whose types occur in public signatures.
#[cfg(feature = "criterion")]
pub use ::criterion;
#[cfg(feature = "cubecl")]
pub use ::cubecl;
#[cfg(feature = "cuda")]
pub use ::cudarc;
pub use across::Across;
pub use arm::Arm;
pub use calorimeter_case::Verdict;
pub use change::{Change, Figure};
pub use closure::Closure;
pub use common_shift::CommonShift;
pub use compare::{Compared, compare, compare_arms};
#[cfg(feature = "criterion")]
pub use criterion_clock::{DeviceTime, bench_work};
pub use discoveries::discoveries;
pub use energy::Energy;
pub use estimate::{Estimate, Window};
pub use failure::{Failure, TimingError};
pub use host::{EndToEnd, Enqueue};
pub use interval::{Interval, median};
pub use mock::{Drift, MockClock, MockWork, Script};
pub use observer::{Observer, Phase, Quiet, State};
pub use options::Options;
pub use paired::Comparison;
pub use rounds::{Measurement, measure};
pub use series::{Series, quantile};
pub use silence::{FORBIDDEN, HeardKernels, Silence};
pub use stop_rule::StopRule;
pub use stopwatch::{Granularity, LaunchSpan, Overhead, Reading, Stopwatch, Work};
pub use suite::{SuiteMean, geometric_mean};
#[cfg(feature = "cubecl")]
pub use timestamps::Timestamps;
pub use wall_clock::WallClock;
