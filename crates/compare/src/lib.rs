#![doc = include_str!("../README.md")]

mod baseline;
mod case;
mod case_text;
mod comparability;
mod compared_record;
mod comparison;
mod error;
mod github;
mod junit;
mod margins;
mod markdown;
mod options;
mod side;
mod source;
mod text;

pub use baseline::{SavedBaseline, save};
// Crates whose types occur in public signatures.
pub use ::{calorimeter_case, calorimeter_sinks};
pub use case::{CaseChange, CaseFinding, SpeedRatio};
pub use comparability::{Comparability, check_comparability};
pub use compared_record::ComparedRecord;
pub use comparison::{RunComparison, compare};
pub use error::CompareError;
pub use github::github;
pub use junit::junit;
pub use markdown::markdown;
pub use options::CompareOptions;
pub use side::CaseSide;
pub use source::{ComparedRun, latest_run, read_runs};
pub use text::text;
