//! NVIDIA GPUs: CUPTI's records of kernels, events on a stream of our own, graphs of it.
//!
//! | clock | a window is | sees |
//! |---|---|---|
//! | [`KernelClock`] | the time in which something of it ran on the device | every stream of the process |
//! | [`CudaEvents`] | from the first launch to the end of the last, gaps on the device included | one stream |
//! | [`GraphClock`] | the same for launches replayed from a graph | one stream |
//!
//! [`TrafficMeter`] reads hardware counters instead of a clock: the bytes that went to and from a GPU's memory.
//!
//! Nothing here needs CUDA to build. [`Cupti::load`] says why there are no records; events and graphs are given a stream,
//! which cannot be had without the driver.

mod activities;
mod busy;
#[allow(unsafe_code, reason = "the bindings of CUPTI")]
mod cupti;
mod events;
#[allow(unsafe_code, reason = "counting the nodes of a graph")]
mod graph;
mod kernels;
#[allow(unsafe_code, reason = "a host function on a stream")]
mod plug;

pub use activities::{Activities, Call, Copy, Kernel, KernelTotal, MemoryEvent};
pub use cupti::{Cupti, Kinds, Traffic, TrafficMeter};
pub use events::CudaEvents;
pub use graph::GraphClock;
pub use kernels::KernelClock;
