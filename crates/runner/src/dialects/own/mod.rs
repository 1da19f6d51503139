//! Our own dialect, a superset of torchao's.

mod axes;
mod file;
mod programs;
mod read;
mod training;

pub use file::File;
pub use read::read;
pub use training::trained_models;
