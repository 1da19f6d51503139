//! CUDA device with its stream, handles and caches.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use cudarc::{
    driver::{CudaContext, CudaModule, CudaStream, sys::CUdevice_attribute as Attribute},
    nvrtc::Ptx,
};

use super::{
    ComputeCapability, DeviceBuffer, DriverVersion, GpuInfo, NativeError,
    algorithm_cache::AlgorithmCache,
    cubin_cache::CubinCache,
    cublaslt_handle::CublasLtHandle,
    driver::{DeviceMemory, driver_error},
    list_gpus,
    nvrtc::{self, CudaSource},
    pinned_staging,
};

/// GPU with a dedicated stream in the device's primary context, which other libraries in the process share.
///
/// The stream does not synchronize with other streams: synchronize before sharing the device.
#[derive(Debug)]
pub struct CudaDevice {
    info: GpuInfo,
    cublaslt: CublasLtHandle,
    algorithm_cache: AlgorithmCache,
    cubin_cache: CubinCache,
    workspace: DeviceMemory,
    modules: Mutex<CompiledModules>,
    staging: pinned_staging::PinnedStaging,
    stream: Arc<CudaStream>,
}

/// Compiled modules by source and macros.
type CompiledModules = HashMap<(CudaSource, Vec<String>), Arc<CudaModule>>;

/// Workspace shared by all matmuls; twice the size that NVIDIA recommends for its newest GPUs.
const WORKSPACE_BYTES: usize = 64 << 20;

impl CudaDevice {
    /// Opens the GPU with this ordinal: primary context, stream, cuBLASLt handle and 64 MiB of workspace.
    pub fn open(ordinal: usize) -> Result<Arc<Self>, NativeError> {
        Self::with_caches(ordinal, AlgorithmCache::default(), CubinCache::default())
    }

    /// Opens the GPU with a cache folder for later processes: compiled kernels, and the fastest cuBLASLt algorithm per
    /// matmul.
    ///
    /// A cached algorithm is used only if the library still proposes it, so a wrong entry makes matmuls slow but not
    /// incorrect. Cached machine code is executed without further checks: only trusted users may write to the folder.
    /// Each GPU needs a separate folder.
    pub fn open_with_cache(ordinal: usize, folder: &Path) -> Result<Arc<Self>, NativeError> {
        Self::with_caches(
            ordinal,
            AlgorithmCache::open(folder.join("cublaslt.txt")),
            CubinCache::in_folder(folder.join("kernels")),
        )
    }

    fn with_caches(ordinal: usize, choices: AlgorithmCache, code: CubinCache) -> Result<Arc<Self>, NativeError> {
        let mut gpus = list_gpus()?;
        if ordinal >= gpus.len() {
            return Err(NativeError::NoSuchDevice { ordinal, count: gpus.len() });
        }
        let info = gpus.swap_remove(ordinal);
        let context = CudaContext::new(ordinal).map_err(driver_error("creating a context"))?;
        let stream = context.new_stream().map_err(driver_error("creating a stream"))?;
        let cublaslt = CublasLtHandle::create(&context)?;
        let workspace = DeviceMemory::allocate(&stream, WORKSPACE_BYTES)?;
        Ok(Arc::new(Self {
            info,
            cublaslt,
            algorithm_cache: choices,
            cubin_cache: code,
            workspace,
            modules: Mutex::default(),
            staging: pinned_staging::PinnedStaging::default(),
            stream,
        }))
    }

    /// Returns the properties that were read when the device was opened.
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    /// Marketing name.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// UUID as reported by NVML, `GPU-…`.
    pub fn uuid(&self) -> &str {
        &self.info.uuid
    }

    /// Memory in bytes.
    pub fn total_memory(&self) -> u64 {
        self.info.total_memory
    }

    /// Free memory in bytes, shared with other processes.
    pub fn free_memory(&self) -> Result<u64, NativeError> {
        let (free, _) = self.stream.context().mem_get_info().map_err(driver_error("querying free memory"))?;
        Ok(free as u64)
    }

    /// Newest CUDA version that the driver supports.
    pub fn driver_version(&self) -> DriverVersion {
        self.info.driver_version
    }

    /// Compute capability.
    pub fn compute_capability(&self) -> ComputeCapability {
        self.info.compute_capability
    }

    /// Returns an error if the GPU is older than `needed`.
    pub(super) fn require(&self, what: &str, needed: ComputeCapability) -> Result<(), NativeError> {
        let found = self.compute_capability();
        if found >= needed {
            return Ok(());
        }
        Err(NativeError::UnsupportedGpu { what: what.to_string(), needed, found, name: self.name().to_string() })
    }

    /// Returns an error unless the GPU has exactly this compute capability.
    fn require_exactly(&self, what: &str, needed: ComputeCapability) -> Result<(), NativeError> {
        let found = self.compute_capability();
        if found == needed {
            return Ok(());
        }
        Err(NativeError::WrongGpuGeneration { what: what.to_string(), needed, found, name: self.name().to_string() })
    }

    /// Number of multiprocessors.
    pub(super) fn multiprocessors(&self) -> Result<usize, NativeError> {
        let count = self.stream.context().attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        Ok(count.map_err(driver_error("querying the number of multiprocessors"))? as usize)
    }

    /// Size of the L2 cache in bytes.
    pub fn l2_bytes(&self) -> u64 {
        self.info.l2_bytes
    }

    /// Downloads f32 values as f64, after all enqueued work.
    pub(super) fn download_f64(&self, memory: &DeviceMemory) -> Result<Vec<f64>, NativeError> {
        pinned_staging::download_mapped(&self.staging, memory, |&bytes| f64::from(f32::from_le_bytes(bytes)))
    }

    /// Allocates an uninitialized buffer of at least one byte.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceBuffer, NativeError> {
        if bytes == 0 {
            return Err(NativeError::InvalidSize { what: "a buffer's length", limit: isize::MAX as usize, value: 0 });
        }
        Ok(DeviceBuffer { memory: DeviceMemory::allocate(&self.stream, bytes)? })
    }

    /// Allocates a buffer and uploads its content.
    pub fn upload(&self, bytes: &[u8]) -> Result<DeviceBuffer, NativeError> {
        let mut buffer = self.allocate(bytes.len())?;
        buffer.upload(bytes)?;
        Ok(buffer)
    }

    /// Stream of all work of this device, e.g. for timing with events.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Waits for all enqueued work and returns its error, if any.
    pub fn synchronize(&self) -> Result<(), NativeError> {
        self.stream.synchronize().map_err(driver_error("waiting for the device"))
    }

    pub(super) fn cublaslt(&self) -> &CublasLtHandle {
        &self.cublaslt
    }

    pub(super) fn algorithm_cache(&self) -> &AlgorithmCache {
        &self.algorithm_cache
    }

    pub(super) fn workspace(&self) -> &DeviceMemory {
        &self.workspace
    }

    /// Returns the module of a source with these macros; compiles it on first use. Returns an error if the source does
    /// not support the GPU.
    pub(super) fn module(&self, source: CudaSource, macros: Vec<String>) -> Result<Arc<CudaModule>, NativeError> {
        // A panic in another thread cannot leave the map inconsistent.
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source, macros);
        if let Some(module) = modules.get(&key) {
            return Ok(module.clone());
        }
        let (needed, only) = source.required_gpu();
        let kernel = format!("the kernel in {}", source.name());
        if only { self.require_exactly(&kernel, needed) } else { self.require(&kernel, needed) }?;
        let image = self.cubin(source, &key.1)?;
        let context = self.stream.context();
        let module = context.load_module(Ptx::from_binary(image)).map_err(driver_error("loading a compiled kernel"))?;
        modules.insert(key, module.clone());
        Ok(module)
    }

    /// Returns the machine code from the cache, or compiles it.
    fn cubin(&self, source: CudaSource, macros: &[String]) -> Result<Vec<u8>, NativeError> {
        let target = self.compute_capability();
        let key = nvrtc::cache_key(source, target, macros)?;
        if let Some(kept) = self.cubin_cache.get(&key) {
            return Ok(kept);
        }
        let image = nvrtc::compile(source, target, macros)?;
        self.cubin_cache.insert(&key, &image);
        Ok(image)
    }
}
