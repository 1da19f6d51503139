//! The memory pools of CubeCL's runtime: each thread that has worked on a device has one.

use super::driver::{Ask, PoolUsage};
use cubecl::MemoryAllocationMode::{Auto, Persistent};
use cubecl::Runtime;
use cubecl::client::ComputeClient;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use cubecl::stream_id::StreamId;

/// A client for each stream there may be: every thread has one with a pool of its own, and fusion works on threads of
/// its own. Streams are numbered as threads first ask for theirs, so a new thread knows how many there are; where there
/// are more threads than the runtime has streams, some share one.
#[allow(unsafe_code, reason = "asking about other threads' streams")]
pub fn of_every_stream<R: Runtime>(client: ComputeClient<R>) -> Vec<ComputeClient<R>> {
    let most = u64::from(CubeClRuntimeConfig::get().streaming.max_streams);
    let count = std::thread::spawn(|| StreamId::current().value).join().unwrap_or(0);
    let on = |value| {
        let mut client = client.clone();
        // SAFETY: the client is only asked about its memory, and never enqueues anything on the stream that it is given.
        unsafe { client.set_stream(StreamId { value }) };
        client
    };
    (0..count.min(most)).map(on).collect()
}

/// The sum of what some pools say.
pub fn usage<R: Runtime>(streams: Vec<ComputeClient<R>>) -> Ask {
    Box::new(move || {
        let mut sum = PoolUsage::default();
        for client in &streams {
            let usage = client.memory_usage().ok()?;
            sum.allocated += usage.bytes_in_use;
            sum.active += usage.bytes_in_use + usage.bytes_padding;
            sum.reserved += usage.bytes_reserved;
        }
        Some(sum)
    })
}

/// Whether blocks that were given back may serve tensors of other sizes.
#[allow(unsafe_code, reason = "CubeCL warns that blocks may be kept for good")]
pub fn set_sharing<R: Runtime>(streams: Vec<ComputeClient<R>>, share: bool) {
    for client in streams {
        // SAFETY: the pool is emptied afterwards, and nobody else opens anything meanwhile.
        unsafe { client.allocation_mode(if share { Auto } else { Persistent }) };
    }
}
