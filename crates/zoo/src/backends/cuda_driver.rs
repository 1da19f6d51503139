//! NVIDIA GPUs for native workloads, with the memory pools of burn's backend if it is part of this build.

use super::driver::BackendDriver;
use super::native_devices::{NativeDevices, cuda_index};
#[cfg(feature = "cuda")]
use super::{cuda, driver::PoolQuery, pools};
use crate::Device;
#[cfg(feature = "cuda")]
use crate::ZooError;

/// Memory and state of NVIDIA GPUs. Only burn's backends have memory pools.
pub(super) struct CudaDriver;

impl BackendDriver for CudaDriver {
    #[cfg(feature = "cuda")]
    fn pool_query(&self, device: Device) -> Option<PoolQuery> {
        pools::usage_query(cuda::client(device))
    }

    #[cfg(feature = "cuda")]
    fn empty_pool(&self, device: Device) -> Result<(), ZooError> {
        pools::empty(cuda::client(device), || cuda::synchronize(device))
    }

    #[cfg(feature = "cuda")]
    fn share_blocks(&self, device: Device, share: bool) -> Result<(), ZooError> {
        pools::share_blocks(cuda::client(device), share)
    }

    fn free_memory(&self, device: Device, machines: &mut NativeDevices) -> Option<u64> {
        machines.native(cuda_index(device).ok()?).ok()?.free_memory().ok()
    }

    // After a fault every CUDA call fails.
    fn failure(&self, device: Device, machines: &NativeDevices) -> Option<String> {
        machines.native.get(&cuda_index(device).ok()?)?.synchronize().err().map(|error| error.to_string())
    }
}
