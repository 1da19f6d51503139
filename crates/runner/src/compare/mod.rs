//! Comparison of two runs, case by case, and of two machines by their profiles.

mod baseline;
mod case;
mod comparison;
mod error;
mod github;
mod junit;
mod likeness;
mod machines;
mod machines_text;
mod margins;
mod markdown;
mod measured;
mod side;
mod source;
mod text;
mod words;

pub use baseline::{Baseline, keep};
pub use comparison::{Comparison, compare};
pub use error::CompareError;
pub use github::github;
pub use junit::junit;
pub(crate) use likeness::{Likeness, likeness};
pub use machines::beside;
pub use machines_text::machines;
pub use markdown::markdown;
pub use source::{Run, Sources, latest_run, sources};
pub use text::text;
