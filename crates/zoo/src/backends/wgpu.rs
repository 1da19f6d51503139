//! Vulkan and Metal adapters through CubeCL on wgpu.

use super::driver::{BackendDriver, PoolQuery};
use super::{BurnBackend, burn_backend, pools};
use crate::{Device, OutputDigest, OutputQuery, TensorValue, ZooError};
use burn::tensor::{Tensor, TensorPrimitive};
use burn_wgpu::Wgpu;
use cubecl::client::ComputeClient;
use cubecl::wgpu::WgpuDevice;
pub(crate) use cubecl::wgpu::WgpuRuntime as Runtime;
use std::sync::Mutex;
use wgpu::DeviceType;

pub(crate) type WgpuEager = super::CubeOf<Runtime>;
pub(crate) type WgpuFused = Wgpu<f32, i32, u8>;

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
    Ok(<Runtime as cubecl::Runtime>::client(&WgpuEager::handle(device)?))
}

impl BurnBackend for WgpuEager {
    const CAN_COMPARE: bool = true;

    fn handle(device: Device) -> Result<WgpuDevice, ZooError> {
        match device {
            Device::Vulkan(index) | Device::Metal(index) => handle(device, index),
            other => Err(ZooError::Unsupported(format!("{other} is not a wgpu device"))),
        }
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

impl BurnBackend for WgpuFused {
    const CAN_COMPARE: bool = true;

    fn handle(device: Device) -> Result<WgpuDevice, ZooError> {
        WgpuEager::handle(device)
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
fn resolve(value: &TensorValue<WgpuFused>) -> TensorValue<WgpuEager> {
    match value.clone() {
        TensorValue::Float(tensor) => {
            let tensor = tensor.into_primitive().tensor();
            let tensor = tensor.client.clone().resolve_tensor_float::<WgpuEager>(tensor);
            TensorValue::Float(Tensor::from_primitive(TensorPrimitive::Float(tensor)))
        }
        TensorValue::Int(tensor) => {
            let tensor = tensor.into_primitive();
            TensorValue::Int(Tensor::from_primitive(tensor.client.clone().resolve_tensor_int::<WgpuEager>(tensor)))
        }
    }
}

/// Memory pools of wgpu adapters.
pub(super) struct WgpuDriver;

impl BackendDriver for WgpuDriver {
    fn pool_query(&self, device: Device) -> Option<PoolQuery> {
        pools::usage_query(client(device))
    }

    fn empty_pool(&self, device: Device) -> Result<(), ZooError> {
        pools::empty(client(device), || synchronize(device))
    }

    fn share_blocks(&self, device: Device, share: bool) -> Result<(), ZooError> {
        pools::share_blocks(client(device), share)
    }
}

/// Waits for the device, which also drops pending tensors of fusion.
fn synchronize(device: Device) {
    // An error here is sticky: the next caller receives it.
    let _ = WgpuFused::handle(device).map(|handle| <WgpuFused as burn::tensor::backend::Backend>::sync(&handle));
}
