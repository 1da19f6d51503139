//! The runner as a library: configuration files in, journal and derived files out.
//!
//! A program that embeds it calls [`worker::serve_if_worker`] first thing in `main`, because the default executor starts
//! the program again as its own worker; or it chooses [`worker::InProcess`] and goes without isolation.
//!
//! ```
//! use calorimeter_runner::devices;
//! use calorimeter_runner::dialects::{Source, read};
//! use calorimeter_runner::entries::{Overrides, resolve};
//! use calorimeter_runner::plan::Plan;
//!
//! let text = "recipes: [baseline, int8wo]\nmodels: [{device: cpu, shapes: [{name: pow2, max_power: 11}]}]";
//! let source = Source { path: "inline.yml".into(), text: text.into() };
//! let entries = read(&[source], devices::here())?.entries;
//! let plan = Plan::new(resolve(entries, &Overrides::default(), devices::here())?, None);
//! // Two shapes, two recipes, and on a CPU by default the eager implementation alone.
//! assert_eq!(plan.len(), 4);
//! for (case, supported) in plan.cases() {
//!     println!("{} {supported:?}", case.id);
//! }
//! # Ok::<(), calorimeter_runner::entries::ConfigError>(())
//! ```

// What is written in another crate may move into this one, and back: it has the same name in both.
extern crate self as calorimeter_runner;

pub mod cli;
pub mod devices;
pub mod dialects;
pub mod entries;
pub mod environment;
#[doc(hidden)]
pub mod kept_files;
mod loosely;
mod merge;
pub mod mock;
pub mod plan;
pub mod platforms;
pub mod run;
pub mod worker;

mod cache;
mod calibration;
mod chatter;
mod clock_lock;
mod clock_notes;
mod compare;
mod exit;
mod expression;
mod fingerprint;
mod host;
mod noise;
mod noise_floor;
mod peaks;
mod print;
mod program;
mod progress;
mod regimes;
mod rough_time;
mod selftest;
mod shown;
mod suite_speedups;
mod tell;
mod written_path;

// Types of these are in signatures.
pub use ::{chrono, regex, serde_json};
pub use exit::Exit;
pub use program::Calorimeter;
