//! Where benchmark results go: one schema for them, a journal that survives crashes, and the files made from it.
//!
//! The records come first. A run appends each [`Record`] to its [`Journal`] before the next case starts, and whatever else
//! is shown, as a table on the terminal, CSV, Parquet or JSON, is derived from those records and can be made again from the
//! journal alone. The crate knows nothing of how anything is measured, so any benchmark can store its results with it.
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
//! What is where:
//!
//! - [`record`]: the schema, a [`Case`] and what became of it
//! - [`journal`]: `journal.jsonl`, written line by line, read back, continued
//! - [`read_back()`]: a run from its folder, its journal or its Parquet file
//! - [`columns`]: what a table of records shows, column by column, and [`csv`], which writes it
//! - `table` and `parquet`: the same as a data frame of polars and as a file with types, in the feature `tables`
//! - [`torchao`] and [`dashboard`]: the files of torchao's micro-benchmarks
//! - [`services`]: what services that follow benchmarks over time read
//! - [`operators`]: the list that readers of an op benchmark know
//! - [`accelerator`]: the files of accelerator-microbenchmarks
//! - [`terminal`]: the live table, the summary and the table of accuracies
//! - [`report`]: the page that is sent to a colleague, and its short form in [`markdown`]
//! - [`index`]: the page in the folder of a run that leads to its files
//! - [`sink`]: the trait, the list of sinks and [`write_all`]
//! - [`atomic`]: how every derived file is put in its place
//!
//! A new sink is a file with a type that implements [`Sink`], and a line in `sinks/mod.rs`; a new column is an
//! entry of its facet in `calorimeter-case`.
//!
//! The feature `tables`, on by default, brings polars for Parquet and data frames, which is nearly all of this crate's
//! weight. Everything else works without it.

// What is written in another crate may move into this one, and back: it has the same name in both.
extern crate self as calorimeter_sinks;

pub mod atomic;
mod brief;
mod causes;
pub mod columns;
pub mod dashboard;
mod error;
pub mod index;
pub mod journal;
mod left_over;
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
pub mod services;
pub mod sink;
mod sinks;
mod spreadsheet;
mod stored;
#[cfg(feature = "tables")]
pub mod table;
pub mod terminal;

// Types of these are in signatures.
pub use ::{chrono, serde_json};
#[cfg(feature = "tables")]
pub use ::polars;
pub use brief::Brief;
pub use calorimeter_case::{self as case, record};
pub use calorimeter_case::{Case, CaseId, Record, Status};
pub use error::SinkError;
pub use journal::Journal;
pub use read_back::{ReadBack, read_back, read_parts};
pub use record_part::RecordPart;
pub use registry::{Written, not_in_this_build, register, sinks, write_all};
pub use sink::{Run, Sink};
#[cfg(feature = "tables")]
pub use sinks::parquet;
pub use sinks::{accelerator, csv, torchao};
pub use stored::Stored;
