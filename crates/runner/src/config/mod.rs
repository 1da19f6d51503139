//! Configuration: files of several dialects read strictly into one model.
//!
//! Precedence, by field-wise overwrite: built-in, top of the file, entry of `models`, command line.

mod accelerator;
mod axes;
mod error;
mod file;
mod resolve;
mod scale;
mod schema;
mod units;
mod words;

pub use accelerator::{default_element, published};
pub use axes::AxisValues;
pub use error::ConfigError;
pub use file::{Entry, File, Mode, Timing};
pub use resolve::{Autotune, NamedTask, Overrides, Resolved, ResolvedEntry, Source, resolve};
pub use scale::Factor;
pub use schema::schema;
pub use units::{Share, Span};
pub use words::{CompileMode, ModelName, Wanted};
