//! `native` on the CPU: multithreaded kernels in memory that is reused by all launches.

pub(crate) mod linear;
pub(crate) mod operator;
pub(crate) mod rowwise;
