#![doc = include_str!("../README.md")]
//!
//! Modules:
//!
//! - [`record`]: the schema, a [`Case`] and its result
//! - [`journal`]: `journal.jsonl`, appended line by line, read, resumed
//! - [`read_back()`]: reads a run from its directory, its journal or its Parquet file
//! - [`columns`](mod@columns): columns of record tables, and [`csv`], which writes them
//! - `table` and `parquet`: the table as a polars data frame and as a Parquet file, in the feature `tables`
//! - [`torchao`] and [`dashboard`]: the files of torchao's micro-benchmarks
//! - [`services`]: formats of continuous benchmarking services
//! - [`operators`]: the JSON list of an operator benchmark
//! - [`accelerator`]: the files of accelerator-microbenchmarks
//! - [`terminal`]: the live table, the summary and the accuracy table
//! - [`report`]: the HTML report, and its short form in [`markdown`]
//! - [`index`]: the page in the directory of a run with links to its files
//! - [`sink`]: the trait, the list of sinks and [`write_all`]
//! - [`atomic`]: atomic writes of derived files
//! - [`cache`]: the per-user cache directory, for facts that later runs reuse
//! - [`log_line!`]: messages on standard error
//!
//! A new sink is a file with a type that implements [`Sink`], and a line in `sinks/mod.rs`. A new column is an entry of
//! its facet in `calorimeter-case`.

// Lets code moved between this crate and another refer to `calorimeter_sinks` in both.
extern crate self as calorimeter_sinks;

pub mod atomic;
pub mod cache;
mod case_excerpt;
mod causes;
pub mod columns;
pub mod dashboard;
mod error;
pub mod index;
pub mod journal;
mod links;
mod lock;
mod log_line;
pub mod markdown;
pub mod memory_page;
pub mod operators;
mod pivot;
mod python;
mod read_back;
mod record_part;
mod registry;
pub mod report;
mod series_store;
pub mod services;
pub mod sink;
mod sinks;
mod spreadsheet;
mod stale_files;
#[cfg(feature = "tables")]
pub mod table;
pub mod terminal;

// Their types occur in public signatures.
pub use ::{chrono, serde_json};
#[cfg(feature = "tables")]
pub use ::polars;
pub use calorimeter_case::{self as case, record};
pub use calorimeter_case::{Case, CaseId, Record, Status};
pub use case_excerpt::{CaseExcerpt, SpeedupExcerpt};
pub use error::SinkError;
pub use journal::Journal;
pub use log_line::write_log_line;
pub use read_back::{StoredRun, read_back, read_parts};
pub use record_part::RecordPart;
pub use registry::{WriteResult, register, sinks, write_all};
pub use series_store::SeriesStore;
pub use sink::{Sink, SinkInput};
#[cfg(feature = "tables")]
pub use sinks::parquet;
pub use sinks::{accelerator, csv, torchao};
