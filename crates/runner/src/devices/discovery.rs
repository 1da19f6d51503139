//! Asking drivers and the system which devices there are.

use super::discovered::DiscoveredDevice;
use calorimeter_case::Device;
use calorimeter_timing::telemetry::last_level_cache;

/// NVIDIA's GPUs.
#[cfg(not(feature = "cuda"))]
pub fn cuda() -> Vec<DiscoveredDevice> {
    Vec::new()
}

/// NVIDIA's GPUs.
#[cfg(feature = "cuda")]
pub fn cuda() -> Vec<DiscoveredDevice> {
    let gpus = calorimeter_kernels::native::probe().unwrap_or_default();
    gpus.into_iter()
        .map(|gpu| DiscoveredDevice {
            device: Device::Cuda(gpu.ordinal as u16),
            driver: format!("CUDA {}, compute capability {}", gpu.driver_version, gpu.compute_capability),
            identity: format!("{} {}", gpu.name, gpu.uuid),
            name: gpu.name,
            software: false,
            stated_gbps: gpu.memory_bytes_per_second.map(|rate| rate as f64 / 1e9),
            cache: Some(gpu.l2_bytes),
            intel: false,
        })
        .collect()
}

/// The adapters of Vulkan or Metal.
#[cfg(not(feature = "wgpu"))]
pub fn graphics() -> Vec<DiscoveredDevice> {
    Vec::new()
}

/// The adapters of Vulkan or Metal.
#[cfg(feature = "wgpu")]
pub fn graphics() -> Vec<DiscoveredDevice> {
    use calorimeter_zoo::backends::wgpu::{INTEL, adapters};
    let device = |index: usize| {
        if cfg!(target_os = "macos") { Device::Metal(index as u16) } else { Device::Vulkan(index as u16) }
    };
    adapters()
        .into_iter()
        .enumerate()
        .map(|(index, adapter)| DiscoveredDevice {
            device: device(index),
            identity: format!("{} {}", adapter.name, adapter.driver),
            name: adapter.name,
            driver: adapter.driver,
            software: adapter.software,
            stated_gbps: None,
            // Graphics APIs do not tell.
            cache: if adapter.software { last_level_cache() } else { None },
            intel: adapter.vendor == INTEL && !adapter.software,
        })
        .collect()
}

/// The processor.
pub fn cpu() -> DiscoveredDevice {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    DiscoveredDevice {
        driver: format!("{threads} threads"),
        cache: last_level_cache(),
        ..DiscoveredDevice::named(Device::Cpu, crate::environment::cpu_name())
    }
}
