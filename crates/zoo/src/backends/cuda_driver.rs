//! NVIDIA GPUs for native workloads, with the memory pools of burn's backend if it is part of this build.

use super::NativeDevices;
use super::driver::BackendDriver;
#[cfg(feature = "cuda")]
use super::{cuda, driver::PoolQuery, pools};
use crate::{Device, ZooError};
use calorimeter_kernels::native::CudaDevice;
use std::sync::Arc;

/// Index of a CUDA device; an error for other devices.
pub fn index(device: Device) -> Result<u16, ZooError> {
    match device {
        Device::Cuda(index) => Ok(index),
        other => Err(ZooError::Device(format!("{other} is not a CUDA device"))),
    }
}

impl NativeDevices {
    /// Returns the CUDA device for native workloads, opened on first use.
    pub fn native(&mut self, index: u16) -> Result<Arc<CudaDevice>, ZooError> {
        if let Some(machine) = self.native.get(&index) {
            return Ok(machine.clone());
        }
        let ordinal = usize::from(index);
        let opened = match &self.cache_dir {
            Some(folder) => CudaDevice::open_with_cache(ordinal, folder),
            None => CudaDevice::open(ordinal),
        };
        let machine = opened.map_err(|error| ZooError::Device(error.to_string()))?;
        self.native.insert(index, machine.clone());
        Ok(machine)
    }
}

/// Memory and state of NVIDIA GPUs. Only burn's backends have memory pools.
pub struct CudaDriver;

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
        machines.native(index(device).ok()?).ok()?.free_memory().ok()
    }

    // After a fault every CUDA call fails.
    fn failure(&self, device: Device, machines: &NativeDevices) -> Option<String> {
        machines.native.get(&index(device).ok()?)?.synchronize().err().map(|error| error.to_string())
    }
}
