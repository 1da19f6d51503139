//! burn backends, each behind a feature and detected at run time.

mod burn_backend;
mod driver;
mod missing_feature;
mod native_devices;
mod open;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod pools;
mod runtime;

#[cfg(feature = "cpu")]
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "native")]
mod cuda_driver;
#[cfg(feature = "wgpu")]
pub mod wgpu;

pub use burn_backend::BurnBackend;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub use burn_backend::CubeOf;
#[cfg(feature = "cuda")]
pub(crate) use cuda::Runtime as GpuRuntime;
pub use driver::{PoolQuery, PoolUsage};
pub use missing_feature::MissingFeature;
pub(crate) use missing_feature::missing_feature;
pub use native_devices::NativeDevices;
#[cfg(feature = "native")]
pub(crate) use native_devices::cuda_index;
pub use open::{open, open_operator};
pub use runtime::{autotune_anchor, configure};
#[cfg(all(feature = "wgpu", not(feature = "cuda")))]
pub(crate) use wgpu::Runtime as GpuRuntime;

use crate::{Device, DeviceKind, Implementation, ZooError};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn_cubecl::CubeRuntime;
use driver::BackendDriver;

const CPU: &[DeviceKind] = &[DeviceKind::Cpu];
const CUDA: &[DeviceKind] = &[DeviceKind::Cuda];
const WGPU: &[DeviceKind] = &[DeviceKind::Vulkan, DeviceKind::Metal];

/// All backends, including those that are not part of this build.
static BACKENDS: [BackendEntry; 3] = [
    BackendEntry {
        kinds: CPU,
        feature: "cpu",
        gpu: false,
        burn: cfg!(feature = "cpu"),
        #[cfg(feature = "cpu")]
        driver: Some(&cpu::CpuDriver),
        #[cfg(not(feature = "cpu"))]
        driver: None,
    },
    BackendEntry {
        kinds: CUDA,
        feature: "cuda",
        gpu: true,
        burn: cfg!(feature = "cuda"),
        #[cfg(feature = "native")]
        driver: Some(&cuda_driver::CudaDriver),
        #[cfg(not(feature = "native"))]
        driver: None,
    },
    BackendEntry {
        kinds: WGPU,
        feature: "wgpu",
        gpu: true,
        burn: cfg!(feature = "wgpu"),
        #[cfg(feature = "wgpu")]
        driver: Some(&wgpu::WgpuDriver),
        #[cfg(not(feature = "wgpu"))]
        driver: None,
    },
];

/// Table entry of a backend.
pub(crate) struct BackendEntry {
    /// Device kinds of the backend.
    kinds: &'static [DeviceKind],
    /// Cargo feature of the backend.
    pub(crate) feature: &'static str,
    /// True for GPU backends, which support `fused` and CubeCL kernels.
    pub(crate) gpu: bool,
    /// True if burn's backend is part of this build.
    burn: bool,
    /// Memory and device state; `None` if nothing in this build uses these devices.
    driver: Option<&'static dyn BackendDriver>,
}

/// Visitor of the backends in this build, whose types differ.
pub(crate) trait BackendVisitor {
    /// Called for a CPU backend.
    fn visit_cpu<B: BurnBackend>(&self, _: &[DeviceKind]) {}

    /// Called for a GPU backend with CubeCL runtime `R` and its fusing variant.
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn visit_gpu<R: CubeRuntime, Fused: BurnBackend>(&self, _: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
    }
}

/// Calls the visitor for each backend in this build.
pub(crate) fn visit_backends(done: &impl BackendVisitor) {
    let _ = done;
    #[cfg(feature = "cpu")]
    done.visit_cpu::<cpu::CpuEager>(CPU);
    #[cfg(feature = "cuda")]
    done.visit_gpu::<cuda::Runtime, cuda::CudaFused>(CUDA);
    #[cfg(feature = "wgpu")]
    done.visit_gpu::<wgpu::Runtime, wgpu::WgpuFused>(WGPU);
}

/// Backends whose burn implementations are not part of this build, with the feature that adds them.
pub fn missing_features() -> Vec<MissingFeature> {
    let missing = BACKENDS.iter().filter(|backend| !backend.burn);
    missing
        .map(|backend| MissingFeature {
            kinds: backend.kinds,
            feature: backend.feature,
            implementations: if backend.gpu { &BURN_IMPLEMENTATIONS } else { &BURN_IMPLEMENTATIONS[..2] },
            has_native: !backend.gpu || backend.driver.is_some(),
        })
        .collect()
}

/// Implementations by burn; `cube` exists on GPUs only.
const BURN_IMPLEMENTATIONS: [Implementation; 3] = [Implementation::Eager, Implementation::Fused, Implementation::Cube];

/// Device kinds whose burn backend is not part of this build.
pub(crate) fn missing_device_kinds() -> impl Iterator<Item = (DeviceKind, &'static BackendEntry)> {
    let missing = BACKENDS.iter().filter(|backend| !backend.burn);
    missing.flat_map(|backend| backend.kinds.iter().map(move |kind| (*kind, backend)))
}

fn backend_of(device: Device) -> Option<&'static BackendEntry> {
    BACKENDS.iter().find(|backend| backend.kinds.contains(&device.kind()))
}

fn driver_of(device: Device) -> Option<&'static dyn BackendDriver> {
    backend_of(device)?.driver
}

impl NativeDevices {
    /// Free device memory in bytes, if the backend reports it.
    pub fn free_memory(&mut self, device: Device) -> Option<u64> {
        driver_of(device)?.free_memory(device, self)
    }

    /// Reason why this process cannot use the device any more, if there is one.
    pub fn failure(&self, device: Device) -> Option<String> {
        driver_of(device)?.failure(device, self)
    }
}

/// Returns a query that sums the memory pools of all threads that have used the device; callable from any thread.
///
/// `None` if the backend has no such query.
pub fn pool_query(device: Device) -> Option<PoolQuery> {
    driver_of(device)?.pool_query(device)
}

/// Returns unused pool memory to the device.
pub fn empty_pool(device: Device) -> Result<(), ZooError> {
    driver_of(device).map_or(Ok(()), |driver| driver.empty_pool(device))
}

/// Allows freed blocks to serve tensors of another size, which is the default.
///
/// If disallowed, pools hold as many blocks of each size as were ever in use at the same time.
pub fn share_blocks(device: Device, share: bool) -> Result<(), ZooError> {
    driver_of(device).map_or(Ok(()), |driver| driver.share_blocks(device, share))
}
