//! Our own files, which torchao's are a part of.

mod axes;
mod file;
mod programs;
mod read;
mod training;

pub use file::File;
pub use read::read;
