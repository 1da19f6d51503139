//! NVIDIA GPUs through CubeCL.

use super::driver::{BackendDriver, PoolQuery};
use super::{BurnBackend, NativeDevices, burn_backend, pools};
use crate::{Device, OutputDigest, OutputQuery, TensorValue, ZooError};
use burn::tensor::{Tensor, TensorPrimitive};
use burn_cuda::{Cuda, CudaDevice as BurnCudaDevice};
use calorimeter_kernels::native::CudaDevice;
use cubecl::client::ComputeClient;
pub use cubecl::cuda::CudaRuntime as Runtime;
use std::sync::Arc;

pub type CudaEager = super::CubeOf<Runtime>;
pub type CudaFused = Cuda<f32, i32>;

impl BurnBackend for CudaEager {
    const CAN_COMPARE: bool = true;
    const TF32: bool = true;

    fn handle(device: Device) -> Result<BurnCudaDevice, ZooError> {
        Ok(BurnCudaDevice::new(usize::from(index(device)?)))
    }

    fn is_rotation_of(
        value: &TensorValue<Self>,
        first: &TensorValue<Self>,
        line: usize,
        by: usize,
    ) -> Result<Option<bool>, ZooError> {
        burn_backend::is_cube_rotation_of([value.clone(), first.clone()], line, by)
    }

    fn digest(value: &TensorValue<Self>, look: &OutputQuery<'_>) -> Result<Option<OutputDigest>, ZooError> {
        burn_backend::cube_digest(value.clone(), look)
    }
}

impl BurnBackend for CudaFused {
    const CAN_COMPARE: bool = true;
    const TF32: bool = true;

    fn handle(device: Device) -> Result<BurnCudaDevice, ZooError> {
        CudaEager::handle(device)
    }

    fn drain(output: &TensorValue<Self>) {
        match output.clone() {
            TensorValue::Float(tensor) => tensor.into_primitive().tensor().client.sync(|| ()),
            TensorValue::Int(tensor) => tensor.into_primitive().client.sync(|| ()),
        };
    }

    fn is_rotation_of(
        value: &TensorValue<Self>,
        first: &TensorValue<Self>,
        line: usize,
        by: usize,
    ) -> Result<Option<bool>, ZooError> {
        burn_backend::is_cube_rotation_of([value, first].map(resolve), line, by)
    }

    fn digest(value: &TensorValue<Self>, look: &OutputQuery<'_>) -> Result<Option<OutputDigest>, ZooError> {
        burn_backend::cube_digest(resolve(value), look)
    }
}

/// Executes the pending operations of a fused tensor and returns it as an eager tensor.
fn resolve(value: &TensorValue<CudaFused>) -> TensorValue<CudaEager> {
    match value.clone() {
        TensorValue::Float(tensor) => {
            let tensor = tensor.into_primitive().tensor();
            let tensor = tensor.client.clone().resolve_tensor_float::<CudaEager>(tensor);
            TensorValue::Float(Tensor::from_primitive(TensorPrimitive::Float(tensor)))
        }
        TensorValue::Int(tensor) => {
            let tensor = tensor.into_primitive();
            TensorValue::Int(Tensor::from_primitive(tensor.client.clone().resolve_tensor_int::<CudaEager>(tensor)))
        }
    }
}

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

/// Memory pools and device state of NVIDIA GPUs.
pub struct CudaDriver;

impl BackendDriver for CudaDriver {
    fn pool_query(&self, device: Device) -> Option<PoolQuery> {
        pools::usage_query(client(device))
    }

    fn empty_pool(&self, device: Device) -> Result<(), ZooError> {
        pools::empty(client(device), || synchronize(device))
    }

    fn share_blocks(&self, device: Device, share: bool) -> Result<(), ZooError> {
        pools::share_blocks(client(device), share)
    }

    fn free_memory(&self, device: Device, machines: &mut NativeDevices) -> Option<u64> {
        machines.native(index(device).ok()?).ok()?.free_memory().ok()
    }

    // After a fault every CUDA call fails.
    fn failure(&self, device: Device, machines: &NativeDevices) -> Option<String> {
        machines.native.get(&index(device).ok()?)?.synchronize().err().map(|error| error.to_string())
    }
}

fn client(device: Device) -> Result<ComputeClient<Runtime>, ZooError> {
    Ok(<Runtime as cubecl::Runtime>::client(&CudaEager::handle(device)?))
}

/// Waits for the device, which also drops pending tensors of fusion.
fn synchronize(device: Device) {
    // An error here is sticky: the next caller receives it.
    let _ = CudaFused::handle(device).map(|handle| <CudaFused as burn::tensor::backend::Backend>::sync(&handle));
}
