#![doc = include_str!("../README.md")]

mod error;
mod factory;
mod foreign;
mod process;
pub mod protocol;
mod registry;
mod shared_buffers;
mod shared_file;
mod workload;

pub use error::ExternalError;
pub use foreign::{open_foreign, start_foreign_early};
pub use process::ExternalProgram;
pub use registry::{RegisteredProgram, is_external, register, registered, start_early};
