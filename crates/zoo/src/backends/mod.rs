//! burn backends, each behind a feature and detected at run time.

mod burn_backend;
mod driver;
mod machines;
mod open;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod pools;
mod runtime;

#[cfg(feature = "cpu")]
mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(feature = "wgpu")]
pub mod wgpu;

pub use burn_backend::BurnBackend;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub use burn_backend::CubeOf;
pub use driver::{Ask, PoolUsage};
pub use machines::Machines;
pub use open::{open, open_operator};
pub use runtime::{configure, tuned_as};

use crate::{Device, DeviceKind, ZooError};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn_cubecl::CubeRuntime;
use driver::Driver;

const CPU: &[DeviceKind] = &[DeviceKind::Cpu];
const CUDA: &[DeviceKind] = &[DeviceKind::Cuda];
const WGPU: &[DeviceKind] = &[DeviceKind::Vulkan, DeviceKind::Metal];

/// All backends, including those that are not part of this build.
static BACKENDS: [Backend; 3] = [
    Backend {
        kinds: CPU,
        feature: "cpu",
        gpu: false,
        #[cfg(feature = "cpu")]
        driver: Some(&cpu::Processor),
        #[cfg(not(feature = "cpu"))]
        driver: None,
    },
    Backend {
        kinds: CUDA,
        feature: "cuda",
        gpu: true,
        #[cfg(feature = "cuda")]
        driver: Some(&cuda::Gpus),
        #[cfg(not(feature = "cuda"))]
        driver: None,
    },
    Backend {
        kinds: WGPU,
        feature: "wgpu",
        gpu: true,
        #[cfg(feature = "wgpu")]
        driver: Some(&wgpu::Adapters),
        #[cfg(not(feature = "wgpu"))]
        driver: None,
    },
];

/// Table entry of a backend.
struct Backend {
    /// Device kinds of the backend.
    kinds: &'static [DeviceKind],
    /// Cargo feature of the backend.
    feature: &'static str,
    /// True for GPU backends, which support `fused` and CubeCL kernels.
    gpu: bool,
    /// Memory and device state; `None` if the backend is not part of this build.
    driver: Option<&'static dyn Driver>,
}

/// Visitor of the backends in this build, whose types differ.
pub(crate) trait EachBackend {
    /// Called for a CPU backend.
    fn processor<B: BurnBackend>(&self, _: &[DeviceKind]) {}

    /// Called for a GPU backend with CubeCL runtime `R` and its fusing variant.
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn gpu<R: CubeRuntime, Fused: BurnBackend>(&self, _: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
    }
}

/// Calls the visitor for each backend in this build.
pub(crate) fn each(done: &impl EachBackend) {
    let _ = done;
    #[cfg(feature = "cpu")]
    done.processor::<cpu::Eager>(CPU);
    #[cfg(feature = "cuda")]
    done.gpu::<cuda::Runtime, cuda::Fused>(CUDA);
    #[cfg(feature = "wgpu")]
    done.gpu::<wgpu::Runtime, wgpu::Fused>(WGPU);
}

/// Device kinds whose burn backend is not part of this build, and true for those that are GPUs.
pub(crate) fn not_built() -> impl Iterator<Item = (DeviceKind, bool)> {
    let missing = BACKENDS.iter().filter(|backend| backend.driver.is_none());
    missing.flat_map(|backend| backend.kinds.iter().map(|kind| (*kind, backend.gpu)))
}

fn backend_of(device: Device) -> Option<&'static Backend> {
    BACKENDS.iter().find(|backend| backend.kinds.contains(&device.kind()))
}

fn driver_of(device: Device) -> Option<&'static dyn Driver> {
    backend_of(device)?.driver
}

/// Error for a device whose backend is not part of this build.
pub(crate) fn no_backend(device: Device) -> ZooError {
    let instead = backend_of(device).map(|backend| format!("; build with `--features {}`", backend.feature));
    ZooError::Unsupported(format!("this build has no backend for {device}{}", instead.unwrap_or_default()))
}

impl Machines {
    /// Free device memory in bytes, if the backend reports it.
    pub fn free_memory(&mut self, device: Device) -> Option<u64> {
        driver_of(device)?.free_memory(device, self)
    }

    /// Reason why this process cannot use the device any more, if there is one.
    pub fn broken(&self, device: Device) -> Option<String> {
        driver_of(device)?.broken(device, self)
    }
}

/// Returns a query that sums the memory pools of all threads that have used the device; callable from any thread.
///
/// `None` if the backend has no such query.
pub fn pool(device: Device) -> Option<Ask> {
    driver_of(device)?.pool(device)
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
