//! The memory pools of CubeCL's runtime: each thread that has worked on a device has one.

use super::driver::{Ask, PoolUsage};
use crate::ZooError;
use cubecl::MemoryAllocationMode::{Auto, Persistent};
use cubecl::Runtime;
use cubecl::client::ComputeClient;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use cubecl::stream_id::StreamId;

/// A client for each stream there may be: every thread has one with a pool of its own, and fusion works on threads of
/// its own. Streams are numbered as threads first ask for theirs, so a new thread knows how many there are; where there
/// are more threads than the runtime has streams, some share one.
#[allow(unsafe_code, reason = "asking about other threads' streams")]
fn of_every_stream<R: Runtime>(client: ComputeClient<R>) -> Result<Vec<ComputeClient<R>>, ZooError> {
    let most = u64::from(CubeClRuntimeConfig::get().streaming.max_streams);
    let newest = std::thread::Builder::new().spawn(|| StreamId::current().value);
    let unknown = |error| ZooError::Device(format!("no thread can be had that counts the device's pools: {error}"));
    let count = newest.map_err(unknown)?.join();
    let count = count.map_err(|_| ZooError::Device("the thread that counts the device's pools panicked".into()))?;
    let on = |value| {
        let mut client = client.clone();
        // SAFETY: the client is only asked about its memory, and never enqueues anything on the stream that it is given.
        unsafe { client.set_stream(StreamId { value }) };
        client
    };
    Ok((0..count.min(most)).map(on).collect())
}

/// A client of a device, if it is there.
type Client<R> = Result<ComputeClient<R>, ZooError>;

/// The sum of what a device's pools say.
pub fn usage<R: Runtime>(client: Client<R>) -> Option<Ask> {
    let streams = of_every_stream(client.ok()?).ok()?;
    Some(Box::new(move || {
        let mut sum = PoolUsage::default();
        for client in &streams {
            let usage = client.memory_usage().ok()?;
            sum.allocated += usage.bytes_in_use;
            sum.active += usage.bytes_in_use + usage.bytes_padding;
            sum.reserved += usage.bytes_reserved;
        }
        Some(sum)
    }))
}

/// Gives back what nobody uses; `settle` waits for the device.
pub fn empty<R: Runtime>(client: Client<R>, settle: impl Fn()) -> Result<(), ZooError> {
    settle();
    of_every_stream(client?)?.iter().for_each(ComputeClient::memory_cleanup);
    settle();
    Ok(())
}

/// Whether blocks that were given back may serve tensors of other sizes.
#[allow(unsafe_code, reason = "CubeCL warns that blocks may be kept for good")]
pub fn share<R: Runtime>(client: Client<R>, share: bool) -> Result<(), ZooError> {
    for client in of_every_stream(client?)? {
        // SAFETY: the pool is emptied afterwards, and nobody else opens anything meanwhile.
        unsafe { client.allocation_mode(if share { Auto } else { Persistent }) };
    }
    Ok(())
}
