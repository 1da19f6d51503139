//! NVIDIA GPUs, through CubeCL.

use super::BurnBackend;
use crate::{Device, Value, ZooError};
use burn_cuda::{Cuda, CudaDevice};
use cubecl::client::ComputeClient;
pub use cubecl::cuda::CudaRuntime as Runtime;

pub type Eager = super::CubeOf<Runtime>;
pub type Fused = Cuda<f32, i32>;

impl BurnBackend for Eager {
    const TF32: bool = true;

    fn handle(device: Device) -> Result<CudaDevice, ZooError> {
        match device {
            Device::Cuda(index) => Ok(CudaDevice::new(usize::from(index))),
            other => Err(ZooError::Device(format!("{other} is no CUDA device"))),
        }
    }
}

impl BurnBackend for Fused {
    const TF32: bool = true;

    fn handle(device: Device) -> Result<CudaDevice, ZooError> {
        Eager::handle(device)
    }

    fn drain(output: &Value<Self>) {
        match output.clone() {
            Value::Float(tensor) => tensor.into_primitive().tensor().client.sync(|| ()),
            Value::Codes(tensor) => tensor.into_primitive().client.sync(|| ()),
        };
    }
}

pub(super) fn client(index: u16) -> ComputeClient<Runtime> {
    <Runtime as cubecl::Runtime>::client(&CudaDevice::new(usize::from(index)))
}

/// Waits for the device; fusion drops what it has yet to drop.
pub(super) fn settle(index: u16) {
    // A device that cannot be waited for says so to whoever asks it next.
    let _ = <Fused as burn::tensor::backend::Backend>::sync(&CudaDevice::new(usize::from(index)));
}
