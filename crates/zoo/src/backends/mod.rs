//! The backends that this build holds, each behind a feature and found at run time.

#[cfg(feature = "cpu")]
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "wgpu")]
pub mod wgpu;

use crate::support::implemented;
use crate::{Device, Implementation, Problem, Tensors, Workload, ZooError};
use calorimeter_recipes::Treatment;

/// Handles to devices that workloads of one process share.
#[derive(Default)]
pub struct Machines {
    #[cfg(feature = "cuda")]
    native: std::collections::HashMap<u16, std::sync::Arc<calorimeter_kernels::native::Machine>>,
}

/// Sets the GPU runtime up for measuring; call it once, before anything is opened. Kernels that were tuned are kept in
/// `tuning`, which must belong to one GPU: the runtime's own cache does not tell one from another.
pub fn configure(tuning: Option<&std::path::Path>) {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig, autotune::AutotuneLevel, cache::CacheConfig};
        let mut config = CubeClRuntimeConfig::default();
        // Below this level a kernel is chosen by whichever shape of a bucket came first.
        config.autotune.level = AutotuneLevel::Full;
        if let Some(tuning) = tuning {
            config.autotune.cache = CacheConfig::File(tuning.to_owned());
        }
        CubeClRuntimeConfig::set(config);
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    let _ = tuning;
}

/// Makes a problem runnable: its tensors, quantised by the recipe, on the device, ready to launch.
pub fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    implementation: Implementation,
    device: Device,
    machines: &mut Machines,
) -> Result<Box<dyn Workload>, ZooError> {
    problem.model.check(problem.shape)?;
    implemented(problem, treatment, implementation, device)?;
    let _ = &machines;
    match device {
        #[cfg(feature = "cpu")]
        Device::Cpu => cpu::open(problem, tensors, treatment),
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => match implementation {
            Implementation::Native => {
                let machine = machines.native(index)?;
                crate::native_workload::open(problem, tensors, machine)
            }
            _ => cuda::open(problem, tensors, treatment, implementation, index),
        },
        #[cfg(feature = "wgpu")]
        Device::Vulkan(index) | Device::Metal(index) => {
            wgpu::open(problem, tensors, treatment, implementation, device, index)
        }
        Device::Mock => Err(ZooError::Unsupported("the mock device computes nothing".into())),
        #[allow(unreachable_patterns, reason = "reached in builds without every feature")]
        other => Err(ZooError::Unsupported(format!(
            "this build has no backend for {other}; build with `--features {}`",
            match other {
                Device::Cuda(_) => "cuda",
                Device::Vulkan(_) | Device::Metal(_) => "wgpu",
                Device::Cpu | Device::Mock => "cpu",
            }
        ))),
    }
}

impl Machines {
    /// Bytes that are free on a device, where it can be asked.
    pub fn free_memory(&mut self, device: Device) -> Option<u64> {
        match device {
            #[cfg(feature = "cuda")]
            Device::Cuda(index) => self.native(index).ok()?.free_memory().ok(),
            _ => None,
        }
    }

    /// The CUDA device that native workloads share.
    #[cfg(feature = "cuda")]
    pub fn native(&mut self, index: u16) -> Result<std::sync::Arc<calorimeter_kernels::native::Machine>, ZooError> {
        if let Some(machine) = self.native.get(&index) {
            return Ok(machine.clone());
        }
        let machine = calorimeter_kernels::native::Machine::open(usize::from(index))
            .map_err(|e| ZooError::Device(e.to_string()))?;
        self.native.insert(index, machine.clone());
        Ok(machine)
    }
}
