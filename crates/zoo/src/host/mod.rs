//! `native` on the CPU: multithreaded kernels in memory that is reused by all launches.

pub mod linear;
pub mod operator;
pub mod rowwise;
