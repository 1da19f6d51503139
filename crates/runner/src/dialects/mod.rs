//! Configuration files in several dialects, parsed strictly into [`Entry`](crate::entries::Entry) values.

mod accelerator;
mod document;
pub(crate) mod flashinfer_bench;
mod names;
pub(crate) mod own;
mod read;
mod schema;
mod source;
mod torchao;
mod yaml;

pub(crate) use accelerator::name_ours;
pub use accelerator::{default_element, published_counts};
pub use document::Document;
pub(crate) use own::trained_models;
pub use read::read;
pub use schema::schema;
pub use source::ConfigSource;
