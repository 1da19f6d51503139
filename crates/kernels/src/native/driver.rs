//! CUDA driver: version, devices and device memory.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaEvent, CudaStream, DriverError,
    result::{self, device},
    sys::{self, CUdevice_attribute_enum as Attribute, CUresult},
};

use super::{ComputeCapability, DriverVersion, GpuInfo, NativeError, gpu::uuid_text, libraries::CudaLibrary};

/// Oldest driver with every function that the bindings call; `cuEventElapsedTime_v2` is the newest of them.
const MIN_DRIVER_VERSION: DriverVersion = DriverVersion { major: 12, minor: 8 };

/// Bytes of a handle of memory that several processes share.
pub(super) const IPC_HANDLE_BYTES: usize = 64;

/// Returns a converter from driver errors to [`NativeError`] that names the action.
pub(super) fn driver_error(doing: &'static str) -> impl Fn(DriverError) -> NativeError {
    move |error| {
        let text = |text: Result<&std::ffi::CStr, DriverError>| {
            text.map_or_else(|_| "unknown status".to_string(), |text| text.to_string_lossy().into_owned())
        };
        NativeError::Driver { doing, name: text(error.error_name()), text: text(error.error_string()) }
    }
}

/// Lists the GPUs without creating a context: no memory is allocated and other processes are not disturbed.
///
/// The list is empty on a machine with a driver but without a GPU; a missing driver is an error.
pub fn list_gpus() -> Result<Vec<GpuInfo>, NativeError> {
    let driver_version = initialize()?;
    (0..device_count()?).map(|ordinal| describe(ordinal, driver_version)).collect()
}

/// Loads and initializes the driver. Must precede every other call of this module.
pub(super) fn initialize() -> Result<DriverVersion, NativeError> {
    CudaLibrary::Driver.require()?;
    let mut code = 0;
    // SAFETY: writes one integer through a valid pointer, and may be called before `cuInit`.
    unsafe { sys::cuDriverGetVersion(&mut code) }.result().map_err(driver_error("querying the driver version"))?;
    let found = DriverVersion::from_encoded(code.unsigned_abs());
    if found < MIN_DRIVER_VERSION {
        return Err(NativeError::DriverTooOld { found, needed: MIN_DRIVER_VERSION });
    }
    match result::init() {
        // The driver reports an error if no GPU is installed; treat it as zero devices.
        Ok(()) | Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(found),
        Err(error) => Err(driver_error("initializing the driver")(error)),
    }
}

/// Number of visible devices.
fn device_count() -> Result<usize, NativeError> {
    match device::get_count() {
        Ok(count) => Ok(count.max(0) as usize),
        Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE | CUresult::CUDA_ERROR_NOT_INITIALIZED)) => Ok(0),
        Err(error) => Err(driver_error("counting the devices")(error)),
    }
}

/// Reads the properties of one device without a context.
fn describe(ordinal: usize, driver_version: DriverVersion) -> Result<GpuInfo, NativeError> {
    let failed = driver_error("querying a device");
    let device = device::get(ordinal as i32).map_err(&failed)?;
    let attribute = |attribute| {
        // SAFETY: `device` was just returned by the driver.
        unsafe { device::get_attribute(device, attribute) }.map(i32::unsigned_abs).map_err(&failed)
    };
    let kilohertz = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
    let bits = attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
    let memory_bytes_per_second = 2 * u64::from(kilohertz) * 1000 * u64::from(bits) / 8;
    // SAFETY: `device` was just returned by the driver.
    let total_memory = unsafe { device::total_mem(device) }.map_err(&failed)? as u64;
    Ok(GpuInfo {
        ordinal,
        name: device::get_name(device).map_err(&failed)?,
        uuid: uuid_text(device::get_uuid(device).map_err(&failed)?.bytes.map(|byte| byte as u8)),
        total_memory,
        memory_bytes_per_second: Some(memory_bytes_per_second).filter(|&rate| rate > 0),
        l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        compute_capability: ComputeCapability {
            major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        },
        driver_version,
    })
}

/// Device memory that is used on a single stream, which orders all accesses.
///
/// Allocated and freed synchronously instead of from the stream's pool, so that the driver's free-memory figure is
/// always up to date.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    address: u64,
    bytes: usize,
    stream: Arc<CudaStream>,
}

impl DeviceMemory {
    pub(super) fn allocate(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, NativeError> {
        stream.context().bind_to_thread().map_err(driver_error("selecting the device"))?;
        // SAFETY: a context is current. The memory is uninitialized, and callers access it only as bytes.
        match unsafe { result::malloc_sync(bytes) } {
            Ok(address) => Ok(Self { address, bytes, stream: stream.clone() }),
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let (free, _) = result::mem_get_info().map_err(driver_error("querying free memory"))?;
                Err(NativeError::OutOfMemory { asked: bytes, free })
            }
            Err(error) => Err(driver_error("allocating device memory")(error)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Returns the address for work on `stream` that accesses at most the first `needed` bytes.
    pub(super) fn address(
        &self,
        what: &'static str,
        stream: &Arc<CudaStream>,
        needed: usize,
    ) -> Result<u64, NativeError> {
        if !Arc::ptr_eq(&self.stream, stream) {
            return Err(NativeError::DeviceMismatch { what });
        }
        if self.bytes < needed {
            return Err(NativeError::BufferSize { what, needed, found: self.bytes });
        }
        Ok(self.address)
    }

    /// Uploads from the host and waits, so that `from` may be dropped.
    pub(super) fn upload(&mut self, from: &[u8]) -> Result<(), NativeError> {
        if from.len() != self.bytes {
            return Err(NativeError::BufferSize { what: "to upload to", needed: from.len(), found: self.bytes });
        }
        self.upload_at(0, from)
    }

    /// Uploads to the bytes from `first` on, and waits.
    pub(super) fn upload_at(&mut self, first: usize, from: &[u8]) -> Result<(), NativeError> {
        let address = self.address_of(first, from.len(), "to upload to")?;
        let failed = driver_error("copying to the device");
        // SAFETY: the range lies in this allocation, and both sides outlive the synchronization below.
        unsafe { result::memcpy_htod_async(address, from, self.stream.cu_stream()) }.map_err(&failed)?;
        self.stream.synchronize().map_err(&failed)
    }

    /// Downloads to the host after all enqueued work.
    pub(super) fn download(&self) -> Result<Vec<u8>, NativeError> {
        self.download_at(0, self.bytes)
    }

    /// Downloads `bytes` bytes from `first` on, after all enqueued work.
    pub(super) fn download_at(&self, first: usize, bytes: usize) -> Result<Vec<u8>, NativeError> {
        let address = self.address_of(first, bytes, "to download from")?;
        let failed = driver_error("copying from the device");
        let mut into = vec![0; bytes];
        // SAFETY: the range lies in this allocation, and both sides outlive the synchronization below.
        unsafe { result::memcpy_dtoh_async(&mut into, address, self.stream.cu_stream()) }.map_err(&failed)?;
        self.stream.synchronize().map_err(&failed)?;
        Ok(into)
    }

    /// Enqueues setting the bytes of a range.
    pub(super) fn fill_at(&mut self, first: usize, bytes: usize, byte: u8) -> Result<(), NativeError> {
        let address = self.address_of(first, bytes, "to fill")?;
        // SAFETY: the range lies in this allocation, and the stream orders the write with every other access.
        unsafe { result::memset_d8_async(address, byte, bytes, self.stream.cu_stream()) }
            .map_err(driver_error("filling device memory"))
    }

    /// Enqueues a copy between two ranges of this memory that do not overlap.
    pub(super) fn copy_within(&mut self, from: usize, to: usize, bytes: usize) -> Result<(), NativeError> {
        let source = self.address_of(from, bytes, "to copy from")?;
        let target = self.address_of(to, bytes, "to copy to")?;
        if from.abs_diff(to) < bytes {
            return Err(NativeError::BufferSize { what: "to copy within", needed: bytes, found: from.abs_diff(to) });
        }
        // SAFETY: both ranges lie in this allocation and do not overlap, and the stream orders the copy with every other
        // access.
        unsafe { result::memcpy_dtod_async(target, source, bytes, self.stream.cu_stream()) }
            .map_err(driver_error("copying within the device"))
    }

    /// Waits for all work of the stream.
    pub(super) fn synchronize(&self) -> Result<(), NativeError> {
        self.stream.synchronize().map_err(driver_error("waiting for the device"))
    }

    /// Address of a range, which must lie in this allocation; makes the context current.
    fn address_of(&self, first: usize, bytes: usize, what: &'static str) -> Result<u64, NativeError> {
        self.make_current()?;
        match first.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.address + first as u64),
            end => Err(NativeError::BufferSize { what, needed: end.unwrap_or(usize::MAX), found: self.bytes }),
        }
    }

    /// Handle by which another process opens this memory.
    pub(super) fn ipc_handle(&self) -> Result<[u8; IPC_HANDLE_BYTES], NativeError> {
        self.make_current()?;
        let mut handle = sys::CUipcMemHandle { reserved: [0; IPC_HANDLE_BYTES] };
        // SAFETY: writes the handle of an allocation by `cuMemAlloc` through a valid pointer.
        unsafe { sys::cuIpcGetMemHandle(&mut handle, self.address) }
            .result()
            .map_err(driver_error("sharing device memory with another process"))?;
        Ok(handle.reserved.map(|byte| byte as u8))
    }

    /// Makes the memory's context current and returns it.
    pub(super) fn make_current(&self) -> Result<&Arc<CudaContext>, NativeError> {
        self.stream.context().bind_to_thread().map_err(driver_error("selecting the device"))?;
        Ok(self.stream.context())
    }

    /// Enqueues a download that begins at byte `first`; complete when the returned event is reached.
    ///
    /// # Safety
    /// Until then `into` must neither move nor be accessed.
    pub(super) unsafe fn enqueue_download(&self, into: &mut [u8], first: usize) -> Result<CudaEvent, NativeError> {
        let address = self.address_of(first, into.len(), "to copy from")?;
        let failed = driver_error("copying from the device");
        // SAFETY: the range lies in this allocation, and the caller guarantees `into`.
        unsafe { result::memcpy_dtoh_async(into, address, self.stream.cu_stream()) }.map_err(&failed)?;
        self.stream.record_event(None).map_err(&failed)
    }

    /// Enqueues a copy within the device.
    pub(super) fn copy_from(&mut self, from: &Self) -> Result<(), NativeError> {
        let from = from.address("to copy from", &self.stream, self.bytes)?;
        let failed = driver_error("copying within the device");
        self.stream.context().bind_to_thread().map_err(&failed)?;
        // SAFETY: both sides are at least `self.bytes` bytes long, and one stream orders the copy with every other
        // access.
        unsafe { result::memcpy_dtod_async(self.address, from, self.bytes, self.stream.cu_stream()) }.map_err(&failed)
    }

    pub(super) fn fill(&mut self, byte: u8) -> Result<(), NativeError> {
        self.fill_at(0, self.bytes, byte)
    }

    /// Fills the memory with repetitions of `bytes`, and waits.
    pub(super) fn fill_repeating(&mut self, bytes: &[u8]) -> Result<(), NativeError> {
        let failed = driver_error("filling device memory");
        self.stream.context().bind_to_thread().map_err(&failed)?;
        let mut filled = bytes.len().min(self.bytes);
        // SAFETY: the copy is no longer than either side and completes before `bytes` may be dropped.
        unsafe { result::memcpy_htod_async(self.address, &bytes[..filled], self.stream.cu_stream()) }
            .map_err(&failed)?;
        while filled < self.bytes {
            let more = filled.min(self.bytes - filled);
            let behind = self.address + filled as u64;
            // SAFETY: both ranges lie inside this allocation and do not overlap; one stream orders the copies.
            unsafe { result::memcpy_dtod_async(behind, self.address, more, self.stream.cu_stream()) }
                .map_err(&failed)?;
            filled += more;
        }
        self.stream.synchronize().map_err(&failed)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let context = self.stream.context();
        // The context stores the error and returns it from its next call.
        context.record_err(self.stream.synchronize());
        // SAFETY: allocated by `allocate`, freed once, and no pending work on its only stream accesses it.
        context.record_err(unsafe { result::free_sync(self.address) });
    }
}
