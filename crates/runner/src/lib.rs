//! The runner as a library: configuration files in, journal and derived files out.
//!
//! A program that embeds it calls [`worker::serve_if_worker`] first thing in `main`, because the default executor starts
//! the program again as its own worker; or it chooses [`worker::InProcess`] and goes without isolation.
//!
//! ```
//! use calorimeter_runner::config::{Overrides, Source, resolve};
//! use calorimeter_runner::plan::Plan;
//!
//! let text = "recipes: [baseline, int8wo]\nmodels: [{device: cpu, shapes: [{name: pow2, max_power: 11}]}]";
//! let source = Source { path: "inline.yml".into(), text: text.into() };
//! let plan = Plan::new(resolve(&[source], &Overrides::default())?, None);
//! // Two shapes, two recipes, and on a CPU by default the eager implementation alone.
//! assert_eq!(plan.len(), 4);
//! for (case, supported) in plan.cases() {
//!     println!("{} {supported:?}", case.id);
//! }
//! # Ok::<(), calorimeter_runner::config::ConfigError>(())
//! ```

pub mod cli;
pub mod config;
pub mod devices;
pub mod environment;
pub mod mock;
pub mod plan;
pub mod run;
pub mod worker;

mod cache;
mod calibration;
mod clocks;
mod exit;
mod expression;
mod fingerprint;
mod noise;
mod peaks;
mod progress;
mod rig;
mod selftest;
mod sensors;
mod suite;

pub use exit::Exit;
