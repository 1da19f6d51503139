//! The backends that this build holds, each behind a feature and found at run time.

#[cfg(feature = "cpu")]
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "wgpu")]
pub mod wgpu;

use crate::support::implemented;
use crate::{Device, Matrix, OperatorProblem, Problem, Setup, Tensors, Workload, ZooError};
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

/// What a device's memory pool says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes that were asked for and are in use.
    pub allocated: u64,
    /// The same with their padding.
    pub active: u64,
    /// Bytes that the pool holds of the device.
    pub reserved: u64,
}

/// Asks the memory pool that this thread's work on a device uses; the question may be put from any thread. `None` for
/// devices whose pool cannot be asked.
pub fn pool(device: Device) -> Option<Box<dyn Fn() -> Option<PoolUsage> + Send>> {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => Some(cuda::pool(index)),
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) => wgpu::client(device).ok().map(of_client),
        _ => None,
    }
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
#[allow(unsafe_code, reason = "asking about another thread's stream")]
fn of_client<R: cubecl::Runtime>(
    mut client: cubecl::client::ComputeClient<R>,
) -> Box<dyn Fn() -> Option<PoolUsage> + Send> {
    // SAFETY: the client is only asked about its memory, and never enqueues anything on the stream that it is given.
    unsafe { client.set_stream(cubecl::stream_id::StreamId::current()) };
    Box::new(move || {
        let usage = client.memory_usage().ok()?;
        let active = usage.bytes_in_use + usage.bytes_padding;
        Some(PoolUsage { allocated: usage.bytes_in_use, active, reserved: usage.bytes_reserved })
    })
}

/// Gives what a device's pool holds and nobody uses back to the device.
pub fn empty_pool(device: Device) {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => cuda::client(index).memory_cleanup(),
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) => {
            if let Ok(client) = wgpu::client(device) {
                client.memory_cleanup();
            }
        }
        _ => {}
    }
}

/// burn without fusion on a runtime of CubeCL.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub type CubeOf<R> = burn_cubecl::CubeBackend<R, f32, i32, u8>;

/// Makes an operator runnable: its inputs on the device, ready to launch.
pub fn open_operator(
    problem: &OperatorProblem,
    inputs: &[Matrix],
    setup: Setup,
    machines: &mut Machines,
) -> Result<Box<dyn Workload>, ZooError> {
    let OperatorProblem { operator, spec, .. } = problem;
    operator.check(spec)?;
    operator.supported(spec, setup.implementation, setup.device)?;
    let _ = (&inputs, &machines);
    match setup.device {
        #[cfg(feature = "cpu")]
        Device::Cpu => cpu::open_operator(problem, inputs, setup.sets),
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => match setup.implementation {
            crate::Implementation::Native => operator.native(spec, inputs, machines.native(index)?, setup.sets),
            _ => cuda::open_operator(problem, inputs, setup, index),
        },
        #[cfg(feature = "wgpu")]
        Device::Vulkan(index) | Device::Metal(index) => wgpu::open_operator(problem, inputs, setup, index),
        other => Err(no_backend(other)),
    }
}

/// Makes a problem runnable: its tensors, quantised by the recipe, on the device, ready to launch.
pub fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    setup: Setup,
    machines: &mut Machines,
) -> Result<Box<dyn Workload>, ZooError> {
    let Setup { implementation, device, sets } = setup;
    problem.model.check(problem.shape)?;
    implemented(problem, treatment, implementation, device)?;
    let _ = (&machines, sets);
    match device {
        #[cfg(feature = "cpu")]
        Device::Cpu => cpu::open(problem, tensors, treatment, sets),
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => match implementation {
            crate::Implementation::Native => {
                let machine = machines.native(index)?;
                crate::native_workload::open(problem, tensors, machine, sets)
            }
            _ => cuda::open(problem, tensors, treatment, setup, index),
        },
        #[cfg(feature = "wgpu")]
        Device::Vulkan(index) | Device::Metal(index) => wgpu::open(problem, tensors, treatment, setup, index),
        other => Err(no_backend(other)),
    }
}

fn no_backend(device: Device) -> ZooError {
    let feature = match device {
        Device::Mock => return ZooError::Unsupported("the mock device computes nothing".into()),
        Device::Cuda(_) => "cuda",
        Device::Vulkan(_) | Device::Metal(_) => "wgpu",
        Device::Cpu => "cpu",
    };
    ZooError::Unsupported(format!("this build has no backend for {device}; build with `--features {feature}`"))
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
