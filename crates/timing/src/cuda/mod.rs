//! NVIDIA GPUs: CUPTI kernel records, events on a dedicated stream, and graphs of it.
//!
//! | clock | a window is | covers |
//! |---|---|---|
//! | [`KernelClock`] | the time in which any of its work ran on the device | every stream of the process |
//! | [`CudaEvents`] | from the first launch to the end of the last, gaps on the device included | one stream |
//! | [`GraphClock`] | from the first launch to the end of the last, replayed from a graph | one stream |
//!
//! [`TrafficMeter`] reads hardware counters instead of a clock: the bytes transferred to and from a GPU's memory.
//!
//! This module builds without CUDA. [`Cupti::load`] reports why records are not available; events and graphs require a
//! stream, which requires the driver.

mod activities;
#[allow(unsafe_code, reason = "the bindings of CUPTI")]
mod cupti;
mod events;
#[allow(unsafe_code, reason = "counting the nodes of a graph")]
mod graph;
mod kernels;
#[allow(unsafe_code, reason = "a host function on a stream")]
mod stream_blocker;
mod union_length;

pub use activities::{Activities, CopyActivity, DriverCall, KernelActivity, KernelTotal, MemoryActivity};
pub use cupti::{ActivityKinds, Cupti, MemoryTraffic, TrafficMeter};
pub use events::CudaEvents;
pub use graph::GraphClock;
pub use kernels::KernelClock;
