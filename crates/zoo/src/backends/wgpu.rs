//! Vulkan and Metal adapters through CubeCL on wgpu.

use super::driver::{Ask, Driver};
use super::{BurnBackend, burn_backend, pools};
use crate::{Device, Look, Seen, Value, ZooError};
use burn::tensor::{Tensor, TensorPrimitive};
use burn_wgpu::Wgpu;
use cubecl::client::ComputeClient;
use cubecl::wgpu::WgpuDevice;
pub(crate) use cubecl::wgpu::WgpuRuntime as Runtime;
use std::sync::Mutex;
use wgpu::DeviceType;

pub(crate) type Eager = super::CubeOf<Runtime>;
pub(crate) type Fused = Wgpu<f32, i32, u8>;

/// Adapter of a graphics driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    /// Name.
    pub name: String,
    /// Driver name and version.
    pub driver: String,
    /// True for software renderers on the CPU.
    pub software: bool,
    /// PCI vendor ID.
    pub vendor: u32,
    handle: WgpuDevice,
}

/// PCI vendor ID of Intel, whose GPUs torch calls `xpu`.
pub const INTEL: u32 = 0x8086;

/// Lists the adapters of the platform's graphics API, hardware first. Empty without a driver.
pub fn adapters() -> Vec<Adapter> {
    let backends = if cfg!(target_os = "macos") { wgpu::Backends::METAL } else { wgpu::Backends::VULKAN };
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    let instance = wgpu::Instance::new(descriptor);
    let mut counts = [0; 3];
    let mut next = |kind: usize| {
        counts[kind] += 1;
        counts[kind] - 1
    };
    let mut adapters: Vec<Adapter> = cubecl::future::block_on(instance.enumerate_adapters(backends))
        .into_iter()
        .filter_map(|adapter| {
            let info = adapter.get_info();
            let handle = match info.device_type {
                DeviceType::DiscreteGpu => WgpuDevice::DiscreteGpu(next(0)),
                DeviceType::IntegratedGpu => WgpuDevice::IntegratedGpu(next(1)),
                DeviceType::VirtualGpu => WgpuDevice::VirtualGpu(next(2)),
                DeviceType::Cpu => WgpuDevice::Cpu,
                DeviceType::Other => return None,
            };
            let software = info.device_type == DeviceType::Cpu;
            let driver = format!("{} {}", info.driver, info.driver_info).trim().to_owned();
            Some(Adapter { name: info.name, driver, software, vendor: info.vendor, handle })
        })
        .collect();
    adapters.sort_by_key(|adapter| adapter.software);
    adapters
}

/// Runtime handle of an adapter, initialized for the platform's graphics API on first use.
fn handle(device: Device, index: u16) -> Result<WgpuDevice, ZooError> {
    static READY: Mutex<Vec<(u16, WgpuDevice)>> = Mutex::new(Vec::new());
    let mut ready = READY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, handle)) = ready.iter().find(|(i, _)| *i == index) {
        return Ok(handle.clone());
    }
    let found = adapters();
    let adapter = found
        .get(usize::from(index))
        .ok_or_else(|| ZooError::Device(format!("{device} not found: there are {} adapters", found.len())))?;
    let options = cubecl::wgpu::RuntimeOptions::default();
    #[cfg(not(target_os = "macos"))]
    cubecl::wgpu::init_setup::<cubecl::wgpu::Vulkan>(&adapter.handle, options);
    #[cfg(target_os = "macos")]
    cubecl::wgpu::init_setup::<cubecl::wgpu::Metal>(&adapter.handle, options);
    ready.push((index, adapter.handle.clone()));
    Ok(adapter.handle.clone())
}

/// Runtime client, for stopwatches and limits.
pub fn client(device: Device) -> Result<ComputeClient<Runtime>, ZooError> {
    Ok(<Runtime as cubecl::Runtime>::client(&Eager::handle(device)?))
}

impl BurnBackend for Eager {
    const COMPARES: bool = true;

    fn handle(device: Device) -> Result<WgpuDevice, ZooError> {
        match device {
            Device::Vulkan(index) | Device::Metal(index) => handle(device, index),
            other => Err(ZooError::Unsupported(format!("{other} is not a wgpu device"))),
        }
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

    fn handle(device: Device) -> Result<WgpuDevice, ZooError> {
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

/// Memory pools of wgpu adapters.
pub(super) struct Adapters;

impl Driver for Adapters {
    fn pool(&self, device: Device) -> Option<Ask> {
        pools::usage(client(device))
    }

    fn empty_pool(&self, device: Device) -> Result<(), ZooError> {
        pools::empty(client(device), || settle(device))
    }

    fn share_blocks(&self, device: Device, share: bool) -> Result<(), ZooError> {
        pools::share(client(device), share)
    }
}

/// Waits for the device, which also drops pending tensors of fusion.
fn settle(device: Device) {
    // An error here is sticky: the next caller receives it.
    let _ = Fused::handle(device).map(|handle| <Fused as burn::tensor::backend::Backend>::sync(&handle));
}
