//! One GPU, ready to work.

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
    Buffer, ComputeCapability, DriverVersion, GpuInfo, NativeError,
    cublaslt_choices::Choices,
    cublaslt_handle::Handle,
    driver::{Memory, failed},
    kept_code::KeptCode,
    nvrtc::{self, Source},
    probe, staged,
};

/// One GPU with one stream of its own, in the device's primary context, which other libraries in the process share.
///
/// The stream does not wait for theirs, nor they for it: synchronize before sharing the device.
#[derive(Debug)]
pub struct Machine {
    info: GpuInfo,
    cublaslt: Handle,
    choices: Choices,
    code: KeptCode,
    workspace: Memory,
    modules: Mutex<Modules>,
    locked: staged::Kept,
    stream: Arc<CudaStream>,
}

/// Compiled sources by their macros.
type Modules = HashMap<(Source, Vec<String>), Arc<CudaModule>>;

/// What every product may use as scratch; the amount that NVIDIA advises for its newest GPUs is half of it.
const WORKSPACE_BYTES: usize = 64 << 20;

impl Machine {
    /// Takes the GPU with that number: its primary context, a stream, a cuBLASLt handle and 64 MiB of workspace.
    pub fn open(ordinal: usize) -> Result<Arc<Self>, NativeError> {
        Self::with(ordinal, Choices::default(), KeptCode::default())
    }

    /// The same, where a folder keeps what took time to find out, for the next process: kernels that were compiled, and which
    /// of cuBLASLt's algorithms was the fastest for a product. An algorithm is taken only if the library still proposes it, so
    /// that a wrong one makes products slow and not wrong; code is run as it lies there. So nobody else may write to the
    /// folder. It belongs to one GPU.
    pub fn open_keeping(ordinal: usize, folder: &Path) -> Result<Arc<Self>, NativeError> {
        Self::with(ordinal, Choices::open(folder.join("cublaslt.txt")), KeptCode::below(folder.join("kernels")))
    }

    fn with(ordinal: usize, choices: Choices, code: KeptCode) -> Result<Arc<Self>, NativeError> {
        let mut gpus = probe()?;
        if ordinal >= gpus.len() {
            return Err(NativeError::NoSuchDevice { ordinal, count: gpus.len() });
        }
        let info = gpus.swap_remove(ordinal);
        let context = CudaContext::new(ordinal).map_err(failed("creating a context"))?;
        let stream = context.new_stream().map_err(failed("creating a stream"))?;
        let cublaslt = Handle::create(&context)?;
        let workspace = Memory::allocate(&stream, WORKSPACE_BYTES)?;
        Ok(Arc::new(Self {
            info,
            cublaslt,
            choices,
            code,
            workspace,
            modules: Mutex::default(),
            locked: staged::Kept::default(),
            stream,
        }))
    }

    /// Everything that can be said of the GPU without asking it again.
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    /// Marketing name.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The identity that NVML uses, `GPU-…`.
    pub fn uuid(&self) -> &str {
        &self.info.uuid
    }

    /// Memory in bytes.
    pub fn total_memory(&self) -> u64 {
        self.info.total_memory
    }

    /// Bytes that can be allocated now, by this or any other process.
    pub fn free_memory(&self) -> Result<u64, NativeError> {
        let (free, _) = self.stream.context().mem_get_info().map_err(failed("asking for free memory"))?;
        Ok(free as u64)
    }

    /// The newest CUDA that the driver supports.
    pub fn driver_version(&self) -> DriverVersion {
        self.info.driver_version
    }

    /// Instruction-set generation.
    pub fn compute_capability(&self) -> ComputeCapability {
        self.info.compute_capability
    }

    /// Refuses what this GPU is too old for.
    pub(super) fn require(&self, what: &'static str, needed: ComputeCapability) -> Result<(), NativeError> {
        let found = self.compute_capability();
        if found >= needed {
            return Ok(());
        }
        Err(NativeError::UnsupportedGpu { what, needed, found, name: self.name().to_string() })
    }

    /// Refuses what only one generation of GPUs can do, on others.
    pub(super) fn require_exactly(&self, what: &'static str, needed: ComputeCapability) -> Result<(), NativeError> {
        let found = self.compute_capability();
        if found == needed {
            return Ok(());
        }
        Err(NativeError::OtherGpu { what, needed, found, name: self.name().to_string() })
    }

    /// How many multiprocessors it has.
    pub(super) fn multiprocessors(&self) -> Result<usize, NativeError> {
        let count = self.stream.context().attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        Ok(count.map_err(failed("asking for the number of multiprocessors"))? as usize)
    }

    /// Size of the L2 cache in bytes.
    pub fn l2_bytes(&self) -> u64 {
        self.info.l2_bytes
    }

    /// What a buffer's f32 numbers are in double precision, after everything enqueued so far.
    pub(super) fn doubles(&self, memory: &Memory) -> Result<Vec<f64>, NativeError> {
        staged::download_each(&self.locked, memory, |&bytes| f64::from(f32::from_le_bytes(bytes)))
    }

    /// A new buffer of at least one byte; its content is whatever was there.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer, NativeError> {
        if bytes == 0 {
            return Err(NativeError::InvalidSize { what: "a buffer's length", limit: isize::MAX as usize, value: 0 });
        }
        Ok(Buffer { memory: Memory::allocate(&self.stream, bytes)? })
    }

    /// A new buffer with this content.
    pub fn upload(&self, bytes: &[u8]) -> Result<Buffer, NativeError> {
        let mut buffer = self.allocate(bytes.len())?;
        buffer.upload(bytes)?;
        Ok(buffer)
    }

    /// The stream that everything of this machine runs on, for a stopwatch that brackets work with events.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Waits until everything enqueued has finished; an error of that work is returned here.
    pub fn synchronize(&self) -> Result<(), NativeError> {
        self.stream.synchronize().map_err(failed("waiting for the device"))
    }

    pub(super) fn cublaslt(&self) -> &Handle {
        &self.cublaslt
    }

    pub(super) fn choices(&self) -> &Choices {
        &self.choices
    }

    pub(super) fn workspace(&self) -> &Memory {
        &self.workspace
    }

    /// The source compiled for this GPU with these macros; compiled once.
    pub(super) fn module(&self, source: Source, macros: Vec<String>) -> Result<Arc<CudaModule>, NativeError> {
        // A panic elsewhere cannot leave the map half changed.
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source, macros);
        if let Some(module) = modules.get(&key) {
            return Ok(module.clone());
        }
        let image = self.image(source, &key.1)?;
        let context = self.stream.context();
        let module = context.load_module(Ptx::from_binary(image)).map_err(failed("loading a compiled kernel"))?;
        modules.insert(key, module.clone());
        Ok(module)
    }

    /// The machine code, from an earlier process if it has compiled the same.
    fn image(&self, source: Source, macros: &[String]) -> Result<Vec<u8>, NativeError> {
        let target = self.compute_capability();
        let key = nvrtc::identity(source, target, macros)?;
        if let Some(kept) = self.code.of(&key) {
            return Ok(kept);
        }
        let image = nvrtc::compile(source, target, macros)?;
        self.code.keep(&key, &image);
        Ok(image)
    }
}
