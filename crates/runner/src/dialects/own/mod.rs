//! Our own dialect, a superset of torchao's.

mod axes;
mod file;
mod programs;
mod read;
mod training;

pub(crate) use file::File;
pub(crate) use read::read;
pub(crate) use training::trained_models;
