//! NVIDIA GPUs through CubeCL.

use super::driver::{Ask, Driver};
use super::{BurnBackend, Machines, burn_backend, pools};
use crate::{Device, Look, Seen, Value, ZooError};
use burn::tensor::{Tensor, TensorPrimitive};
use burn_cuda::{Cuda, CudaDevice};
use calorimeter_kernels::native::Machine;
use cubecl::client::ComputeClient;
pub use cubecl::cuda::CudaRuntime as Runtime;
use std::sync::Arc;

pub type Eager = super::CubeOf<Runtime>;
pub type Fused = Cuda<f32, i32>;

impl BurnBackend for Eager {
    const COMPARES: bool = true;
    const TF32: bool = true;

    fn handle(device: Device) -> Result<CudaDevice, ZooError> {
        Ok(CudaDevice::new(usize::from(index(device)?)))
    }

    fn is_moved_on(value: &Value<Self>, first: &Value<Self>, line: usize, by: usize) -> Result<Option<bool>, ZooError> {
        burn_backend::is_moved_on([value.clone(), first.clone()], line, by)
    }

    fn seen(value: &Value<Self>, look: &Look<'_>) -> Result<Option<Seen>, ZooError> {
        burn_backend::seen(value.clone(), look)
    }
}

impl BurnBackend for Fused {
    const COMPARES: bool = true;
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

    fn is_moved_on(value: &Value<Self>, first: &Value<Self>, line: usize, by: usize) -> Result<Option<bool>, ZooError> {
        burn_backend::is_moved_on([value, first].map(resolved), line, by)
    }

    fn seen(value: &Value<Self>, look: &Look<'_>) -> Result<Option<Seen>, ZooError> {
        burn_backend::seen(resolved(value), look)
    }
}

/// Executes the pending operations of a fused tensor and returns it as an eager tensor.
fn resolved(value: &Value<Fused>) -> Value<Eager> {
    match value.clone() {
        Value::Float(tensor) => {
            let tensor = tensor.into_primitive().tensor();
            let tensor = tensor.client.clone().resolve_tensor_float::<Eager>(tensor);
            Value::Float(Tensor::from_primitive(TensorPrimitive::Float(tensor)))
        }
        Value::Codes(tensor) => {
            let tensor = tensor.into_primitive();
            Value::Codes(Tensor::from_primitive(tensor.client.clone().resolve_tensor_int::<Eager>(tensor)))
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

impl Machines {
    /// Returns the CUDA device for native workloads, opened on first use.
    pub fn native(&mut self, index: u16) -> Result<Arc<Machine>, ZooError> {
        if let Some(machine) = self.native.get(&index) {
            return Ok(machine.clone());
        }
        let ordinal = usize::from(index);
        let opened = match &self.folder {
            Some(folder) => Machine::open_keeping(ordinal, folder),
            None => Machine::open(ordinal),
        };
        let machine = opened.map_err(|error| ZooError::Device(error.to_string()))?;
        self.native.insert(index, machine.clone());
        Ok(machine)
    }
}

/// Memory pools and device state of NVIDIA GPUs.
pub struct Gpus;

impl Driver for Gpus {
    fn pool(&self, device: Device) -> Option<Ask> {
        pools::usage(client(device))
    }

    fn empty_pool(&self, device: Device) -> Result<(), ZooError> {
        pools::empty(client(device), || settle(device))
    }

    fn share_blocks(&self, device: Device, share: bool) -> Result<(), ZooError> {
        pools::share(client(device), share)
    }

    fn free_memory(&self, device: Device, machines: &mut Machines) -> Option<u64> {
        machines.native(index(device).ok()?).ok()?.free_memory().ok()
    }

    // After a fault every CUDA call fails.
    fn broken(&self, device: Device, machines: &Machines) -> Option<String> {
        machines.native.get(&index(device).ok()?)?.synchronize().err().map(|error| error.to_string())
    }
}

fn client(device: Device) -> Result<ComputeClient<Runtime>, ZooError> {
    Ok(<Runtime as cubecl::Runtime>::client(&Eager::handle(device)?))
}

/// Waits for the device, which also drops pending tensors of fusion.
fn settle(device: Device) {
    // An error here is sticky: the next caller receives it.
    let _ = Fused::handle(device).map(|handle| <Fused as burn::tensor::backend::Backend>::sync(&handle));
}
