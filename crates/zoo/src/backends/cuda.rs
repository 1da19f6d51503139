//! burn backends of NVIDIA GPUs, through CubeCL.

use super::{BurnBackend, burn_backend, native_devices};
use crate::{Device, OutputDigest, OutputQuery, TensorValue, ZooError};
use burn::tensor::{Tensor, TensorPrimitive};
use burn_cuda::{Cuda, CudaDevice as BurnCudaDevice};
use cubecl::client::ComputeClient;
pub(crate) use cubecl::cuda::CudaRuntime as Runtime;

pub(super) type CudaEager = super::CubeOf<Runtime>;
pub(super) type CudaFused = Cuda<f32, i32>;

impl BurnBackend for CudaEager {
    const CAN_COMPARE: bool = true;
    const TF32: bool = true;

    fn handle(device: Device) -> Result<BurnCudaDevice, ZooError> {
        Ok(BurnCudaDevice::new(usize::from(native_devices::cuda_index(device)?)))
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

pub(super) fn client(device: Device) -> Result<ComputeClient<Runtime>, ZooError> {
    Ok(<Runtime as cubecl::Runtime>::client(&CudaEager::handle(device)?))
}

/// Waits for the device, which also drops pending tensors of fusion.
pub(super) fn synchronize(device: Device) {
    // An error here is sticky: the next caller receives it.
    let _ = CudaFused::handle(device).map(|handle| <CudaFused as burn::tensor::backend::Backend>::sync(&handle));
}
