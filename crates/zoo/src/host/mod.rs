//! By kernels of the processor, on its threads and in memory that is kept.

pub mod arrays;
mod layer;
pub mod linear;
pub mod rows;
