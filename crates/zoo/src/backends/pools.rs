//! Memory pools of the CubeCL runtime: one per thread that has used a device.

use super::driver::{PoolQuery, PoolUsage};
use crate::ZooError;
use cubecl::MemoryAllocationMode::{Auto, Persistent};
use cubecl::Runtime;
use cubecl::client::ComputeClient;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
use cubecl::stream_id::StreamId;

/// Returns a client for each stream.
///
/// Each thread has its own stream and pool, and fusion works on its own threads. Stream ids are assigned in order of
/// first use, so a new thread's id is the number of streams. Beyond the maximum of the runtime, threads share streams.
#[allow(unsafe_code, reason = "asking about other threads' streams")]
fn stream_clients<R: Runtime>(client: ComputeClient<R>) -> Result<Vec<ComputeClient<R>>, ZooError> {
    let max_streams = u64::from(CubeClRuntimeConfig::get().streaming.max_streams);
    let newest = std::thread::Builder::new().spawn(|| StreamId::current().value);
    let unknown =
        |error| ZooError::Device(format!("cannot start a thread to count the device's memory pools: {error}"));
    let count = newest.map_err(unknown)?.join();
    let count =
        count.map_err(|_| ZooError::Device("the thread that counts the device's memory pools panicked".into()))?;
    let client_of = |value| {
        let mut client = client.clone();
        // SAFETY: the client only queries or changes memory pools and never enqueues work on the given stream.
        unsafe { client.set_stream(StreamId { value }) };
        client
    };
    Ok((0..count.min(max_streams)).map(client_of).collect())
}

/// Client of a device, or the reason why there is none.
type ClientResult<R> = Result<ComputeClient<R>, ZooError>;

/// Returns a query that sums the usage of all pools of a device.
pub(super) fn usage_query<R: Runtime>(client: ClientResult<R>) -> Option<PoolQuery> {
    let streams = stream_clients(client.ok()?).ok()?;
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

/// Frees unused pool memory; `synchronize` waits for the device.
pub(super) fn empty<R: Runtime>(client: ClientResult<R>, synchronize: impl Fn()) -> Result<(), ZooError> {
    synchronize();
    stream_clients(client?)?.iter().for_each(ComputeClient::memory_cleanup);
    synchronize();
    Ok(())
}

/// Allows or disallows reuse of freed blocks for tensors of other sizes.
#[allow(unsafe_code, reason = "CubeCL warns that blocks may never be freed")]
pub(super) fn share_blocks<R: Runtime>(client: ClientResult<R>, share: bool) -> Result<(), ZooError> {
    for client in stream_clients(client?)? {
        // SAFETY: the pool is emptied afterwards, and no other workload is opened meanwhile.
        unsafe { client.allocation_mode(if share { Auto } else { Persistent }) };
    }
    Ok(())
}
