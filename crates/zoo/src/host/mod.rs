//! By kernels of the processor, on its threads and in memory that is kept.

mod layer;
pub mod linear;
