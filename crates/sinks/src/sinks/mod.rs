//! Built-in sinks.

pub mod accelerator;
pub mod csv;
pub(crate) mod flashinfer;
#[cfg(feature = "tables")]
pub mod parquet;
pub mod torchao;
pub(crate) mod training;

use crate::Sink;

/// Built-in sinks, in the order in which they write.
pub(crate) const BUILT_IN: &[&dyn Sink] = &[
    &csv::Csv,
    #[cfg(feature = "tables")]
    &parquet::Parquet,
    &torchao::Torchao,
    &training::Training,
    &accelerator::Accelerator,
    &flashinfer::Flashinfer,
];
