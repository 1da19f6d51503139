//! `native` on the CPU: multithreaded kernels in memory that is reused by all launches.

pub mod arrays;
mod layer;
pub mod linear;
pub mod rows;
