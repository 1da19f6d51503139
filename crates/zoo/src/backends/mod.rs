//! The backends of burn, each behind a feature and found at run time.

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

/// Every backend, whether this build holds it or not.
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

/// What is known of a backend.
struct Backend {
    /// The kinds of devices that it drives.
    kinds: &'static [DeviceKind],
    /// The feature that it is behind.
    feature: &'static str,
    /// Whether its devices are GPUs, on which operations are fused and CubeCL's kernels run.
    gpu: bool,
    /// What its devices can be asked, if this build holds it.
    driver: Option<&'static dyn Driver>,
}

/// What is to be done with each backend that this build holds: their types differ.
pub(crate) trait EachBackend {
    /// With one that runs on a processor.
    fn processor<B: BurnBackend>(&self, _: &[DeviceKind]) {}

    /// With one that runs on GPUs by a runtime of CubeCL, and fuses.
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn gpu<R: CubeRuntime, Fused: BurnBackend>(&self, _: &[DeviceKind])
    where
        CubeOf<R>: BurnBackend,
    {
    }
}

/// Does something with each backend that this build holds.
pub(crate) fn each(done: &impl EachBackend) {
    let _ = done;
    #[cfg(feature = "cpu")]
    done.processor::<cpu::Eager>(CPU);
    #[cfg(feature = "cuda")]
    done.gpu::<cuda::Runtime, cuda::Fused>(CUDA);
    #[cfg(feature = "wgpu")]
    done.gpu::<wgpu::Runtime, wgpu::Fused>(WGPU);
}

/// The kinds of devices that this build has no backend of burn for, and whether they are GPUs.
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

/// Why nothing can be opened on a device.
pub(crate) fn no_backend(device: Device) -> ZooError {
    let instead = backend_of(device).map(|backend| format!("; build with `--features {}`", backend.feature));
    ZooError::Unsupported(format!("this build has no backend for {device}{}", instead.unwrap_or_default()))
}

impl Machines {
    /// Bytes that are free on a device, where it can be asked.
    pub fn free_memory(&mut self, device: Device) -> Option<u64> {
        driver_of(device)?.free_memory(device, self)
    }

    /// Why nothing can run on a device in this process any more, if that is so.
    pub fn broken(&self, device: Device) -> Option<String> {
        driver_of(device)?.broken(device, self)
    }
}

/// A question to the memory pools of a device, those of every thread that has worked on it; it may be put from any
/// thread. `None` for devices whose pools cannot be asked.
pub fn pool(device: Device) -> Option<Ask> {
    driver_of(device)?.pool(device)
}

/// Gives what a device's pools hold and nobody uses back to the device.
pub fn empty_pool(device: Device) -> Result<(), ZooError> {
    driver_of(device).map_or(Ok(()), |driver| driver.empty_pool(device))
}

/// Whether a block of a device's pools that was given back may serve a tensor of another size. It may, until it is
/// switched off: then the pools hold as many blocks of each size as were ever in use together.
pub fn share_blocks(device: Device, share: bool) -> Result<(), ZooError> {
    driver_of(device).map_or(Ok(()), |driver| driver.share_blocks(device, share))
}
