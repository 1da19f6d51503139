//! Our sinks, one file or folder each.

pub mod accelerator;
pub mod csv;
#[cfg(feature = "tables")]
pub mod parquet;
pub mod torchao;
pub mod training;

use crate::Sink;

/// One line for each sink, in the order in which they write.
pub(crate) const OURS: &[&dyn Sink] = &[
    &csv::Csv,
    #[cfg(feature = "tables")]
    &parquet::Parquet,
    &torchao::Torchao,
    &training::Training,
    &accelerator::Accelerator,
];
