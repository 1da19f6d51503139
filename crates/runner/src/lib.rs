//! Runner library: reads configuration files, measures, and writes a journal and derived files.
//!
//! A program that embeds it calls [`worker::serve_if_worker`] first in `main`, because the default executor starts the
//! program again as its own worker. A program that does not need isolation uses [`worker::InProcess`] instead.
//!
//! ```
//! use calorimeter_probe::devices;
//! use calorimeter_runner::dialects::{ConfigSource, read};
//! use calorimeter_runner::entries::{Overrides, resolve};
//! use calorimeter_runner::plan::Plan;
//!
//! let text = "recipes: [baseline, int8wo]\nmodels: [{device: cpu, shapes: [{name: pow2, max_power: 11}]}]";
//! let source = ConfigSource { path: "inline.yml".into(), text: text.into() };
//! let entries = read(&[source], devices::this_machine())?.entries;
//! let plan = Plan::new(resolve(entries, &Overrides::default(), devices::this_machine())?, None);
//! // Two shapes, two recipes; the default implementation on a CPU is eager.
//! assert_eq!(plan.len(), 4);
//! for (case, supported) in plan.cases() {
//!     println!("{} {supported:?}", case.id);
//! }
//! # Ok::<(), calorimeter_runner::entries::ConfigError>(())
//! ```

// Lets files move between this crate and other crates without changing their paths.
extern crate self as calorimeter_runner;

pub mod cli;
pub mod dialects;
pub mod entries;
pub mod environment;
#[doc(hidden)]
pub mod fuzz_api;
mod merge;
pub mod mock;
pub mod plan;
pub mod run;
pub mod worker;

mod calibration;
mod exit;
mod expression;
mod fingerprint;
mod noise;
mod path_serde;
mod print;
mod program;
mod progress;
mod rough_time;
mod suite_speedups;

// Crates whose types appear in public signatures.
pub use ::{chrono, regex, serde_json};
pub use exit::Exit;
pub use program::Calorimeter;
