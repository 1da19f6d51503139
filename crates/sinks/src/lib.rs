//! Storage of benchmark results: a record schema, a crash-safe journal, and the files derived from it.
//!
//! A run appends each [`Record`] to its [`Journal`] before the next case starts. All other output, such as tables on
//! the terminal, CSV, Parquet and JSON, is derived from those records and can be rendered again from the journal. The
//! crate contains no measurement code, so any benchmark can store its results with it.
//!
//! ```
//! use calorimeter_sinks::journal::{self, Header, Journal};
//! use calorimeter_sinks::record::Estimate;
//! use calorimeter_sinks::{Case, Record, Status};
//! use calorimeter_sinks::terminal::{Color, LiveTable};
//! # let header = Header { run_id: "1".into(), started: "2026-03-09T07:05:01+02:00".into(), argv: vec![],
//! #     config: serde_json::json!({}), config_fingerprint: "f".into(), plan_cases: 1, environment: serde_json::json!({}),
//! #     output_dir: None };
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! let case = Case { id: "linear/int8wo".into(), recipe: "int8wo".into(), ..Case::default() };
//! let mut record = Record::new(case, Status::Ok);
//! record.time.time_ns = Some(Estimate { median: 12_340.0, lo: Some(12_300.0), hi: Some(12_380.0) });
//!
//! let mut journal = Journal::create(dir, &header)?;
//! journal.append(&record)?;
//!
//! let contents = journal::read(dir)?;
//! assert_eq!(contents.records, [record]);
//! let mut table = LiveTable::new(Color::Never);
//! for record in &contents.records {
//!     table.show(record).iter().for_each(|lines| println!("{lines}"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Modules:
//!
//! - [`record`]: the schema, a [`Case`] and its result
//! - [`journal`]: `journal.jsonl`, appended line by line, read, resumed
//! - [`read_back()`]: a run from its directory, its journal or its Parquet file
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
//!
//! A new sink is a file with a type that implements [`Sink`], and a line in `sinks/mod.rs`. A new column is an entry of
//! its facet in `calorimeter-case`.
//!
//! The feature `tables`, on by default, adds polars for Parquet and data frames, which accounts for nearly all of the size
//! of this crate. Everything else works without it.

// Lets code moved between this crate and another refer to `calorimeter_sinks` in both.
extern crate self as calorimeter_sinks;

pub mod atomic;
mod case_excerpt;
mod causes;
pub mod columns;
pub mod dashboard;
mod error;
pub mod index;
pub mod journal;
mod links;
mod lock;
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
pub use case_excerpt::CaseExcerpt;
pub use error::SinkError;
pub use journal::Journal;
pub use read_back::{StoredRun, read_back, read_parts};
pub use record_part::RecordPart;
pub use registry::{WriteResult, register, sinks, unavailable_files, write_all};
pub use series_store::SeriesStore;
pub use sink::{Sink, SinkInput};
#[cfg(feature = "tables")]
pub use sinks::parquet;
pub use sinks::{accelerator, csv, torchao};
