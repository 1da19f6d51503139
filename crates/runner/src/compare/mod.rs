//! Comparison of two runs, case by case, and of two machines by their profiles.

mod baseline;
mod case;
mod case_text;
mod comparability;
mod compared_record;
mod comparison;
mod error;
mod github;
mod junit;
mod machines;
mod machines_text;
mod margins;
mod markdown;
mod side;
mod source;
mod text;

pub use baseline::{SavedBaseline, save};
pub(crate) use comparability::{Comparability, check_comparability};
pub use comparison::{RunComparison, compare};
pub use error::CompareError;
pub use github::github;
pub use junit::junit;
pub use machines::compare_machines;
pub use machines_text::machines_table;
pub use markdown::markdown;
pub use source::{ComparedRun, Sources, latest_run, sources};
pub use text::text;
