//! The backends that this build holds, each behind a feature and found at run time.

#[cfg(feature = "cpu")]
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(feature = "wgpu")]
pub mod wgpu;

use crate::{
    Device, DeviceKind, Inputs, Matrix, Opening, OperatorProblem, Problem, Setup, Task, Tensors, Value, Workload,
    ZooError, registry,
};
use calorimeter_recipes::Treatment;
use calorimeter_recipes::device::QuantBackend;

/// Handles to devices that workloads of one process share.
#[derive(Default)]
pub struct Machines {
    #[cfg(feature = "cuda")]
    native: std::collections::HashMap<u16, std::sync::Arc<calorimeter_kernels::native::Machine>>,
}

/// Sets the GPU runtime up for measuring; call it once, before anything is opened. Kernels that were tuned are kept in
/// `tuning`, which must belong to one GPU: the runtime's own cache does not tell one from another. Where kernels are
/// looked at, the runtime waits for each and logs its name and time: nothing else can be measured then.
pub fn configure(tuning: Option<&std::path::Path>, look: bool) {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig, autotune::AutotuneLevel, cache::CacheConfig};
        let mut config = CubeClRuntimeConfig::default();
        // Below this level a kernel is chosen by whichever shape of a bucket came first.
        config.autotune.level = AutotuneLevel::Full;
        if let Some(tuning) = tuning {
            config.autotune.cache = CacheConfig::File(tuning.to_owned());
        }
        if look {
            config.profiling.logger.level = cubecl::config::profiling::ProfilingLogLevel::Medium;
            config.profiling.logger.log = Some(cubecl_common::config::logger::LogCrateLevel::Info);
        }
        CubeClRuntimeConfig::set(config);
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    let _ = (tuning, look);
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

/// Asks the memory pools of a device, those of every thread that has worked on it; the question may be put from any
/// thread. `None` for devices whose pools cannot be asked.
pub fn pool(device: Device) -> Option<Box<dyn Fn() -> Option<PoolUsage> + Send>> {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => Some(usage(of_every_stream(cuda::client(index)))),
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) => Some(usage(of_every_stream(wgpu::client(device).ok()?))),
        _ => None,
    }
}

/// A client for each stream there may be: every thread has one with a pool of its own, and fusion works on threads of
/// its own. Streams are numbered as threads first ask for theirs, so a new thread knows how many there are; where there
/// are more threads than the runtime has streams, some share one.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
#[allow(unsafe_code, reason = "asking about other threads' streams")]
fn of_every_stream<R: cubecl::Runtime>(
    client: cubecl::client::ComputeClient<R>,
) -> Vec<cubecl::client::ComputeClient<R>> {
    use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
    use cubecl::stream_id::StreamId;
    let most = u64::from(CubeClRuntimeConfig::get().streaming.max_streams);
    let count = std::thread::spawn(|| StreamId::current().value).join().unwrap_or(0);
    let on = |value| {
        let mut client = client.clone();
        // SAFETY: the client is only asked about its memory, and never enqueues anything on the stream that it is given.
        unsafe { client.set_stream(StreamId { value }) };
        client
    };
    (0..count.min(most)).map(on).collect()
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
fn usage<R: cubecl::Runtime>(
    streams: Vec<cubecl::client::ComputeClient<R>>,
) -> Box<dyn Fn() -> Option<PoolUsage> + Send> {
    Box::new(move || {
        let mut sum = PoolUsage::default();
        for client in &streams {
            let usage = client.memory_usage().ok()?;
            sum.allocated += usage.bytes_in_use;
            sum.active += usage.bytes_in_use + usage.bytes_padding;
            sum.reserved += usage.bytes_reserved;
        }
        Some(sum)
    })
}

/// Gives what a device's pools hold and nobody uses back to the device.
pub fn empty_pool(device: Device) {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => {
            cuda::settle(index);
            of_every_stream(cuda::client(index)).iter().for_each(|client| client.memory_cleanup());
            cuda::settle(index);
        }
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) => {
            wgpu::settle(device);
            let client = wgpu::client(device).into_iter();
            client.flat_map(of_every_stream).for_each(|client| client.memory_cleanup());
            wgpu::settle(device);
        }
        _ => {}
    }
}

/// Whether a block of a device's pools that was given back may serve a tensor of another size. It may, until it is
/// switched off: then the pools hold as many blocks of each size as were ever in use together.
pub fn share_blocks(device: Device, share: bool) {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(index) => set_sharing(of_every_stream(cuda::client(index)), share),
        #[cfg(feature = "wgpu")]
        Device::Vulkan(_) | Device::Metal(_) => {
            set_sharing(wgpu::client(device).into_iter().flat_map(of_every_stream).collect(), share);
        }
        _ => {
            let _ = share;
        }
    }
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
#[allow(unsafe_code, reason = "CubeCL warns that blocks may be kept for good")]
fn set_sharing<R: cubecl::Runtime>(streams: Vec<cubecl::client::ComputeClient<R>>, share: bool) {
    use cubecl::MemoryAllocationMode::{Auto, Persistent};
    for client in streams {
        // SAFETY: the pool is emptied afterwards, and nobody else opens anything meanwhile.
        unsafe { client.allocation_mode(if share { Auto } else { Persistent }) };
    }
}

/// burn without fusion on a runtime of CubeCL.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub type CubeOf<R> = burn_cubecl::CubeBackend<R, f32, i32, u8>;

/// A backend of burn, as it is opened here.
pub trait BurnBackend: QuantBackend {
    /// Whether its f32 products may run on tensor cores.
    const TF32: bool = false;

    /// burn's handle of a device.
    fn handle(device: Device) -> Result<Self::Device, ZooError>;

    /// Makes a lazy backend enqueue what a pass has registered.
    fn drain(_: &Value<Self>) {}
}

/// The kinds of devices that wgpu drives.
#[cfg(feature = "wgpu")]
pub(crate) const WGPU: &[DeviceKind] = &[DeviceKind::Vulkan, DeviceKind::Metal];

/// The kinds of devices that this build has no backend of burn for.
pub(crate) fn not_built() -> impl Iterator<Item = DeviceKind> {
    DeviceKind::ALL.into_iter().filter(|kind| match kind {
        DeviceKind::Cpu => !cfg!(feature = "cpu"),
        DeviceKind::Cuda => !cfg!(feature = "cuda"),
        DeviceKind::Vulkan | DeviceKind::Metal => !cfg!(feature = "wgpu"),
        DeviceKind::Mock => false,
    })
}

/// Makes an operator runnable: its inputs on the device, ready to launch.
pub fn open_operator(
    problem: &OperatorProblem,
    inputs: &[Matrix],
    setup: Setup,
    machines: &mut Machines,
) -> Result<Box<dyn Workload>, ZooError> {
    let OperatorProblem { operator, spec, .. } = problem;
    operator.check(spec)?;
    let (task, inputs) = (Task::Operator(problem.clone()), Inputs::Operator(inputs.to_vec()));
    let treatment = Treatment::none(spec.dtype());
    registry::open(Opening { task: &task, inputs: &inputs, treatment: &treatment, setup, machines })
}

/// Makes a problem runnable: its tensors, quantised by the recipe, on the device, ready to launch.
pub fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    setup: Setup,
    machines: &mut Machines,
) -> Result<Box<dyn Workload>, ZooError> {
    problem.model.check(problem.shape)?;
    let (task, inputs) = (Task::Model(*problem), Inputs::Model(tensors.clone()));
    registry::open(Opening { task: &task, inputs: &inputs, treatment, setup, machines })
}

/// Why nothing can be opened on a device.
pub(crate) fn no_backend(device: Device) -> ZooError {
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

    /// Why nothing can run on a device in this process any more, if that is so: after a fault every call into CUDA fails.
    pub fn broken(&self, device: Device) -> Option<String> {
        match device {
            #[cfg(feature = "cuda")]
            Device::Cuda(index) => self.native.get(&index)?.synchronize().err().map(|error| error.to_string()),
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
