//! Copies between host and device memory.

use std::{ptr::NonNull, slice, sync::Arc, thread};

use cudarc::driver::{CudaStream, DriverError, result};

use super::{CudaDevice, DeviceBuffer, NativeError, driver::driver_error};

/// Kind of host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostMemoryKind {
    /// Page-locked memory, which the device accesses by DMA.
    Pinned,
    /// Pageable memory, which the driver copies in pieces through a pinned staging buffer.
    Pageable,
}

/// Host memory for transfers.
#[derive(Debug)]
pub struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// Owner of the memory at `start`, unless pinned.
    pageable: Option<Vec<u8>>,
    stream: Arc<CudaStream>,
}

// SAFETY: this value owns the memory exclusively, and pinned memory may be used and freed on any thread.
unsafe impl Send for HostMemory {}
// SAFETY: a shared reference only reads, after all copies into the memory have completed.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    fn new(stream: &Arc<CudaStream>, kind: HostMemoryKind, content: &[u8]) -> Result<Self, NativeError> {
        let bytes = content.len();
        match kind {
            HostMemoryKind::Pageable => {
                let mut pageable = content.to_vec();
                let start = NonNull::from(pageable.as_mut_slice()).cast();
                Ok(Self { start, bytes, pageable: Some(pageable), stream: stream.clone() })
            }
            HostMemoryKind::Pinned => {
                let failed = driver_error("allocating pinned memory");
                stream.context().bind_to_thread().map_err(&failed)?;
                // SAFETY: a context is current; the memory is initialized below before it is read.
                let start = unsafe { result::malloc_host(bytes, 0) }.map_err(&failed)?.cast::<u8>();
                let Some(start) = NonNull::new(start) else { return Err(null_allocation()) };
                // SAFETY: both ranges are `bytes` long and do not overlap.
                unsafe { start.copy_from_nonoverlapping(NonNull::from(content).cast(), bytes) };
                Ok(Self { start, bytes, pageable: None, stream: stream.clone() })
            }
        }
    }

    /// Size in bytes.
    #[allow(clippy::len_without_is_empty, reason = "host memory holds at least one byte")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns the content after all enqueued work, and the error of that work, if any.
    pub fn content(&self) -> Result<&[u8], NativeError> {
        self.stream.synchronize().map_err(driver_error("waiting for a copy"))?;
        // SAFETY: the memory has this length, was initialized at construction, and no copy is pending.
        Ok(unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) })
    }

    /// Sets every byte, after all enqueued work.
    pub fn fill(&mut self, byte: u8) -> Result<(), NativeError> {
        self.stream.synchronize().map_err(driver_error("waiting for a copy"))?;
        // SAFETY: the memory has this length, and no copy is pending.
        unsafe { self.start.write_bytes(byte, self.bytes) };
        Ok(())
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(self.stream.synchronize());
        if self.pageable.is_none() {
            // SAFETY: allocated by `malloc_host`, freed once, and no copy is pending.
            context.record_err(unsafe { result::free_host(self.start.as_ptr().cast()) });
        }
    }
}

/// Copies on the stream of a device; bidirectional copies use a second stream that the first one waits for.
#[derive(Debug)]
pub struct Transfers {
    stream: Arc<CudaStream>,
    download_stream: Arc<CudaStream>,
}

impl Transfers {
    /// Creates the second stream.
    pub fn new(device: &CudaDevice) -> Result<Self, NativeError> {
        let stream = device.stream().clone();
        let back = stream.fork().map_err(driver_error("creating a stream"))?;
        Ok(Self { stream, download_stream: back })
    }

    /// Allocates host memory with the given content.
    pub fn allocate_host(&self, kind: HostMemoryKind, content: &[u8]) -> Result<HostMemory, NativeError> {
        if content.is_empty() {
            return Err(NativeError::InvalidSize { what: "a buffer's length", limit: isize::MAX as usize, value: 0 });
        }
        HostMemory::new(&self.stream, kind, content)
    }

    /// Enqueues a copy to the device.
    pub fn to_device(&self, from: &HostMemory, to: &mut DeviceBuffer) -> Result<(), NativeError> {
        let address = to.memory.address("to copy to", &self.stream, from.bytes)?;
        enqueue_upload(&self.stream, from, address).map_err(driver_error("copying to the device"))
    }

    /// Enqueues a copy to the host.
    pub fn to_host(&self, from: &DeviceBuffer, to: &mut HostMemory) -> Result<(), NativeError> {
        let address = from.memory.address("to copy from", &self.stream, to.bytes)?;
        enqueue_download(&self.stream, address, to).map_err(driver_error("copying from the device"))
    }

    /// Enqueues concurrent copies to the device and to the host. Copies of pageable memory block the calling thread, so
    /// each direction gets a thread.
    pub fn copy_both_directions(
        &self,
        from: &HostMemory,
        to: &mut DeviceBuffer,
        from_device: &DeviceBuffer,
        to_host: &mut HostMemory,
    ) -> Result<(), NativeError> {
        let failed = driver_error("a bidirectional copy");
        let (there, here) = (
            to.memory.address("to copy to", &self.stream, from.bytes)?,
            from_device.memory.address("to copy from", &self.stream, to_host.bytes)?,
        );
        self.download_stream.join(&self.stream).map_err(&failed)?;
        let copied = if from.pageable.is_some() {
            thread::scope(|scope| {
                let other = scope.spawn(|| enqueue_download(&self.download_stream, here, to_host));
                let copied = enqueue_upload(&self.stream, from, there);
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(copied)
            })
        } else {
            enqueue_download(&self.download_stream, here, to_host)
                .and_then(|()| enqueue_upload(&self.stream, from, there))
        };
        copied.and_then(|()| self.stream.join(&self.download_stream)).map_err(failed)
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.download_stream.context().record_err(self.download_stream.synchronize());
    }
}

fn enqueue_upload(stream: &CudaStream, from: &HostMemory, to: u64) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    // SAFETY: both sides were checked to have this length, and both owners synchronize with the stream before freeing.
    unsafe {
        let from = slice::from_raw_parts(from.start.as_ptr(), from.bytes);
        result::memcpy_htod_async(to, from, stream.cu_stream())
    }
}

fn enqueue_download(stream: &CudaStream, from: u64, to: &mut HostMemory) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    // SAFETY: both sides were checked to have this length; the memory is not accessed before the stream is
    // synchronized.
    unsafe {
        let to = slice::from_raw_parts_mut(to.start.as_ptr(), to.bytes);
        result::memcpy_dtoh_async(to, from, stream.cu_stream())
    }
}

fn null_allocation() -> NativeError {
    NativeError::Driver {
        doing: "allocating pinned memory",
        name: "CUDA_SUCCESS".into(),
        text: "null pointer returned".into(),
    }
}
