#![doc = include_str!("../README.md")]

// Alias of this crate, so that code can move between crates without changes to its paths.
extern crate self as calorimeter_timing;

mod arm;
mod arm_state;
mod atomic_file;
mod calibrate;
mod change;
mod closure;
mod common_shift;
mod compare;
#[cfg(test)]
mod coverage;
mod discoveries;
mod energy;
mod estimate;
mod failure;
mod format;
mod host;
mod interval;
mod isolated;
mod jit_monitor;
mod mock;
mod observer;
mod options;
mod paired;
mod remote;
mod replicate_mean;
mod rounds;
mod scatter;
mod stop_rule;
mod stopwatch;
mod student;
mod suite;
mod time_one;
mod wall_clock;
mod warm_up;

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
pub use arm::Arm;
pub use calorimeter_case::Verdict;
pub use calorimeter_case::record::Scatter;
pub use change::{SpeedChange, ValueWithInterval};
pub use closure::{AsyncWork, Closure};
pub use common_shift::CommonShift;
pub use compare::{PairMeasurement, compare, compare_arms};
#[cfg(feature = "criterion")]
pub use criterion_clock::{DeviceTime, bench_work};
pub use discoveries::discoveries;
pub use energy::LaunchEnergy;
pub use estimate::{TimeEstimate, Window};
pub use failure::{Failure, TimingError};
pub use host::{EndToEndClock, EnqueueClock};
pub use interval::{Interval, median};
pub use jit_monitor::{JitMonitor, KernelLog, TUNING_DISABLED};
pub use mock::{Drift, MockClock, MockWork, Script};
pub use observer::{DeviceState, NullObserver, Observer, Phase};
pub use options::Options;
pub use paired::Comparison;
pub use remote::RemoteClock;
pub use replicate_mean::ReplicateMean;
pub use rounds::{Measurement, measure};
pub use scatter::{ScatterStats, quantile};
pub use stop_rule::StopRule;
pub use stopwatch::{ClockResolution, KernelTracing, LaunchSpan, Overhead, Reading, Stopwatch, Work};
pub use suite::{SuiteMean, geometric_mean};
pub use time_one::time_one;
#[cfg(feature = "cubecl")]
pub use timestamps::Timestamps;
pub use wall_clock::WallClock;
