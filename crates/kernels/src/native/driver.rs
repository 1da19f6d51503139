//! The CUDA driver: its version, its devices and device memory.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaEvent, CudaStream, DriverError,
    result::{self, device},
    sys::{self, CUdevice_attribute_enum as Attribute, CUresult},
};

use super::{ComputeCapability, DriverVersion, GpuInfo, NativeError, gpu::uuid_text, libraries::Library};

/// The first version with every function that the bindings call here; `cuEventElapsedTime_v2` is the newest of them.
const OLDEST_DRIVER: DriverVersion = DriverVersion { major: 12, minor: 8 };

/// Names the action in a driver's error.
pub(super) fn failed(doing: &'static str) -> impl Fn(DriverError) -> NativeError {
    move |error| {
        let text = |text: Result<&std::ffi::CStr, DriverError>| {
            text.map_or_else(|_| "unknown status".to_string(), |text| text.to_string_lossy().into_owned())
        };
        NativeError::Driver { doing, name: text(error.error_name()), text: text(error.error_string()) }
    }
}

/// Lists the GPUs without creating a context on any of them: no memory is taken and other processes are not disturbed.
///
/// A machine with a driver and no GPU has an empty list; one without a driver is an error that says so.
pub fn probe() -> Result<Vec<GpuInfo>, NativeError> {
    let driver_version = start()?;
    (0..device_count()?).map(|ordinal| describe(ordinal, driver_version)).collect()
}

/// Loads and initializes the driver. Everything else in this module comes after it.
pub(super) fn start() -> Result<DriverVersion, NativeError> {
    Library::Driver.require()?;
    let mut code = 0;
    // SAFETY: writes one integer through a valid pointer, and may be called before `cuInit`.
    unsafe { sys::cuDriverGetVersion(&mut code) }.result().map_err(failed("asking the driver's version"))?;
    let found = DriverVersion::from_code(code.unsigned_abs());
    if found < OLDEST_DRIVER {
        return Err(NativeError::DriverTooOld { found, needed: OLDEST_DRIVER });
    }
    match result::init() {
        // The driver calls it an error to be installed without a GPU; here it is a machine with none.
        Ok(()) | Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(found),
        Err(error) => Err(failed("initializing the driver")(error)),
    }
}

/// How many devices are visible.
fn device_count() -> Result<usize, NativeError> {
    match device::get_count() {
        Ok(count) => Ok(count.max(0) as usize),
        Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE | CUresult::CUDA_ERROR_NOT_INITIALIZED)) => Ok(0),
        Err(error) => Err(failed("counting the devices")(error)),
    }
}

/// Asks about one device, without a context.
fn describe(ordinal: usize, driver_version: DriverVersion) -> Result<GpuInfo, NativeError> {
    let failed = failed("describing a device");
    let device = device::get(ordinal as i32).map_err(&failed)?;
    let attribute = |attribute| {
        // SAFETY: `device` was just returned by the driver.
        unsafe { device::get_attribute(device, attribute) }.map(i32::unsigned_abs).map_err(&failed)
    };
    let kilohertz = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
    let bits = attribute(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
    let memory_bytes_per_second = 2 * u64::from(kilohertz) * 1000 * u64::from(bits) / 8;
    // SAFETY: as above.
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

/// Device memory that is used on one stream only, which is what orders its uses.
///
/// Allocated and freed with the plain calls and not from the stream's pool, so that free memory is what the driver says
/// it is, at once.
#[derive(Debug)]
pub(super) struct Memory {
    address: u64,
    bytes: usize,
    stream: Arc<CudaStream>,
}

impl Memory {
    pub(super) fn allocate(stream: &Arc<CudaStream>, bytes: usize) -> Result<Self, NativeError> {
        stream.context().bind_to_thread().map_err(failed("selecting the device"))?;
        // SAFETY: a context is current. The memory is uninitialized, which no caller can see as anything but bytes.
        match unsafe { result::malloc_sync(bytes) } {
            Ok(address) => Ok(Self { address, bytes, stream: stream.clone() }),
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let (free, _) = result::mem_get_info().map_err(failed("asking for free memory"))?;
                Err(NativeError::OutOfMemory { asked: bytes, free })
            }
            Err(error) => Err(failed("allocating device memory")(error)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// The address, for work on `stream` that touches at most the first `needed` bytes.
    pub(super) fn address(
        &self,
        what: &'static str,
        stream: &Arc<CudaStream>,
        needed: usize,
    ) -> Result<u64, NativeError> {
        if !Arc::ptr_eq(&self.stream, stream) {
            return Err(NativeError::OtherMachine { what });
        }
        if self.bytes < needed {
            return Err(NativeError::BufferSize { what, needed, found: self.bytes });
        }
        Ok(self.address)
    }

    /// Copies from the host and waits, so that `from` may be dropped.
    pub(super) fn upload(&mut self, from: &[u8]) -> Result<(), NativeError> {
        if from.len() != self.bytes {
            return Err(NativeError::BufferSize { what: "to upload to", needed: from.len(), found: self.bytes });
        }
        let failed = failed("copying to the device");
        self.stream.context().bind_to_thread().map_err(&failed)?;
        // SAFETY: both sides are `from.len()` bytes long, and both outlive the wait below.
        unsafe { result::memcpy_htod_async(self.address, from, self.stream.cu_stream()) }.map_err(&failed)?;
        self.stream.synchronize().map_err(&failed)
    }

    /// Copies to the host after everything enqueued so far.
    pub(super) fn download(&self) -> Result<Vec<u8>, NativeError> {
        let failed = failed("copying from the device");
        self.stream.context().bind_to_thread().map_err(&failed)?;
        let mut into = vec![0; self.bytes];
        // SAFETY: both sides are `self.bytes` bytes long, and both outlive the wait below.
        unsafe { result::memcpy_dtoh_async(&mut into, self.address, self.stream.cu_stream()) }.map_err(&failed)?;
        self.stream.synchronize().map_err(&failed)?;
        Ok(into)
    }

    /// Makes the memory's context current, and tells it.
    pub(super) fn select(&self) -> Result<&Arc<CudaContext>, NativeError> {
        self.stream.context().bind_to_thread().map_err(failed("selecting the device"))?;
        Ok(self.stream.context())
    }

    /// Enqueues a copy to the host of what begins at a byte; it is there when the event has come.
    ///
    /// # Safety
    /// Until then `into` stays where it is, and nobody looks at it.
    pub(super) unsafe fn begin_download(&self, into: &mut [u8], first: usize) -> Result<CudaEvent, NativeError> {
        let end = first + into.len();
        if end > self.bytes {
            return Err(NativeError::BufferSize { what: "to copy from", needed: end, found: self.bytes });
        }
        let failed = failed("copying from the device");
        // SAFETY: the range lies in this allocation, and the caller sees to `into`.
        unsafe { result::memcpy_dtoh_async(into, self.address + first as u64, self.stream.cu_stream()) }
            .map_err(&failed)?;
        self.stream.record_event(None).map_err(&failed)
    }

    /// Copies within the device after everything enqueued so far.
    pub(super) fn copy_from(&mut self, from: &Self) -> Result<(), NativeError> {
        let from = from.address("to copy from", &self.stream, self.bytes)?;
        let failed = failed("copying within the device");
        self.stream.context().bind_to_thread().map_err(&failed)?;
        // SAFETY: both sides are `self.bytes` bytes long at least, and one stream orders it with every other use of them.
        unsafe { result::memcpy_dtod_async(self.address, from, self.bytes, self.stream.cu_stream()) }.map_err(&failed)
    }

    pub(super) fn fill(&mut self, byte: u8) -> Result<(), NativeError> {
        let failed = failed("filling device memory");
        self.stream.context().bind_to_thread().map_err(&failed)?;
        // SAFETY: the range is exactly this allocation, and the stream orders it with every other use.
        unsafe { result::memset_d8_async(self.address, byte, self.bytes, self.stream.cu_stream()) }.map_err(&failed)
    }

    /// Fills it with bytes again and again, and waits.
    pub(super) fn repeat(&mut self, bytes: &[u8]) -> Result<(), NativeError> {
        let failed = failed("filling device memory");
        self.stream.context().bind_to_thread().map_err(&failed)?;
        let mut filled = bytes.len().min(self.bytes);
        // SAFETY: the copy is no longer than either side, and waited for before `bytes` may go.
        unsafe { result::memcpy_htod_async(self.address, &bytes[..filled], self.stream.cu_stream()) }
            .map_err(&failed)?;
        while filled < self.bytes {
            let more = filled.min(self.bytes - filled);
            let behind = self.address + filled as u64;
            // SAFETY: both ranges lie inside this allocation and apart; one stream orders the copies.
            unsafe { result::memcpy_dtod_async(behind, self.address, more, self.stream.cu_stream()) }
                .map_err(&failed)?;
            filled += more;
        }
        self.stream.synchronize().map_err(&failed)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let context = self.stream.context();
        // Errors are kept by the context and come back from its next call.
        context.record_err(self.stream.synchronize());
        // SAFETY: allocated by `allocate`, freed once, and no work that uses it is left on its only stream.
        context.record_err(unsafe { result::free_sync(self.address) });
    }
}
