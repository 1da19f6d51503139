//! Test devices.

use cubecl::client::ComputeClient;
use cubecl::cuda::{CudaDevice, CudaRuntime};
use cubecl::wgpu::{RuntimeOptions, Vulkan, WgpuDevice, WgpuRuntime};
use cubecl::{Runtime, future};
use std::sync::LazyLock;

static VULKAN: LazyLock<Option<ComputeClient<WgpuRuntime>>> = LazyLock::new(|| {
    let backends = wgpu::Backends::VULKAN;
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    if future::block_on(wgpu::Instance::new(descriptor).enumerate_adapters(backends)).is_empty() {
        return None;
    }
    cubecl::wgpu::init_setup::<Vulkan>(&WgpuDevice::DefaultDevice, RuntimeOptions::default());
    Some(WgpuRuntime::client(&WgpuDevice::DefaultDevice))
});

/// Default Vulkan adapter.
pub(crate) fn vulkan() -> Option<ComputeClient<WgpuRuntime>> {
    VULKAN.clone()
}

/// First NVIDIA GPU.
pub(crate) fn cuda() -> ComputeClient<CudaRuntime> {
    CudaRuntime::client(&CudaDevice::new(0))
}
