//! How a benchmark is measured, for any code that can be launched and waited for.
//!
//! A [`Work`] is launched many times inside a *window*; a [`Stopwatch`] says how long the window took; [`measure`]
//! calibrates windows, warms up, interleaves the windows of several arms in rounds, stops when the intervals are narrow
//! enough, and answers with medians, exact order-statistic intervals and paired speed-ups. Nothing here knows of tensors.
//!
//! [`compare`] does so for two closures, [`compare_arms`] for two works of any kind; more arms, and one alone, go to
//! [`measure`]:
//!
//! ```
//! use calorimeter_timing::{Arm, Closure, Options, Quiet, WallClock, measure};
//! use std::time::Duration;
//!
//! let mut works = [1, 2, 3].map(|times| Closure::new(move || (0..1000 * times).fold(0u64, |sum, i| sum ^ i * i)));
//! let mut clocks = [(); 3].map(|()| WallClock::synchronous());
//! let arms = works.iter_mut().zip(&mut clocks).map(|(work, clock)| Arm::new(work, clock));
//! let mut arms: Vec<Arm> = arms.enumerate().map(|(i, arm)| if i == 0 { arm } else { arm.against(0) }).collect();
//! let options = Options { max_time: Duration::from_millis(50), warm_up: Duration::ZERO, ..Options::default() };
//! for measured in measure(&mut arms, &options, &mut Quiet) {
//!     println!("{}", measured?.time);
//! }
//! # Ok::<(), calorimeter_timing::TimingError>(())
//! ```

mod calibrate;
mod closure;
mod compare;
mod durable;
mod estimate;
mod failure;
#[cfg(test)]
mod honesty;
mod host;
mod interval;
mod mock;
mod options;
mod paired;
mod rounds;
mod series;
mod silence;
mod stop_rule;
mod stopwatch;
mod suite;
mod verdict;
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

pub use closure::Closure;
pub use compare::{Compared, compare, compare_arms};
#[cfg(feature = "criterion")]
pub use criterion_clock::{DeviceTime, bench_work};
pub use estimate::{Estimate, Window};
pub use failure::{Failure, TimingError};
pub use host::{EndToEnd, Enqueue};
pub use interval::{Interval, median};
pub use mock::{Drift, MockClock, MockWork, Script};
pub use options::Options;
pub use paired::Comparison;
pub use rounds::{Arm, Measurement, Observer, Phase, Quiet, measure};
pub use series::Series;
pub use silence::{FORBIDDEN, HeardKernels, Silence};
pub use stop_rule::StopRule;
pub use stopwatch::{Granularity, LaunchSpan, Overhead, Reading, Stopwatch, WallClock, Work};
pub use suite::{SuiteMean, geometric_mean};
#[cfg(feature = "cubecl")]
pub use timestamps::Timestamps;
pub use verdict::{UnknownVerdict, Verdict};
