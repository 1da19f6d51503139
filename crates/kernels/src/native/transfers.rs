//! Copies between the memories of host and device.

use std::{ptr::NonNull, slice, sync::Arc, thread};

use cudarc::driver::{CudaStream, DriverError, result};

use super::{Buffer, Machine, NativeError, driver::failed};

/// What sort of memory a copy begins or ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostKind {
    /// Pages that stay where they are: the device copies by itself.
    Pinned,
    /// Any other: the driver copies it through pinned memory of its own, piece by piece.
    Pageable,
}

/// Memory of the host that is copied from and to.
#[derive(Debug)]
pub struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
    /// What `start` points into, where it is not pinned.
    pageable: Option<Vec<u8>>,
    stream: Arc<CudaStream>,
}

// SAFETY: the memory belongs to this value alone, and pinned memory may be used and freed by any thread.
unsafe impl Send for HostMemory {}
// SAFETY: a shared reference only reads, after waiting for the copies that write.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    fn new(stream: &Arc<CudaStream>, kind: HostKind, content: &[u8]) -> Result<Self, NativeError> {
        let bytes = content.len();
        match kind {
            HostKind::Pageable => {
                let mut pageable = content.to_vec();
                let start = NonNull::from(pageable.as_mut_slice()).cast();
                Ok(Self { start, bytes, pageable: Some(pageable), stream: stream.clone() })
            }
            HostKind::Pinned => {
                let failed = failed("allocating pinned memory");
                stream.context().bind_to_thread().map_err(&failed)?;
                // SAFETY: a context is current; the memory is written below before anything reads it.
                let start = unsafe { result::malloc_host(bytes, 0) }.map_err(&failed)?.cast::<u8>();
                let Some(start) = NonNull::new(start) else { return Err(refused()) };
                // SAFETY: both are `bytes` long, and the new one is not the old one.
                unsafe { start.copy_from_nonoverlapping(NonNull::from(content).cast(), bytes) };
                Ok(Self { start, bytes, pageable: None, stream: stream.clone() })
            }
        }
    }

    /// Size in bytes.
    #[allow(clippy::len_without_is_empty, reason = "as of a buffer")]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// The content after everything enqueued so far; an error of that work is returned here.
    pub fn content(&self) -> Result<&[u8], NativeError> {
        self.stream.synchronize().map_err(failed("waiting for a copy"))?;
        // SAFETY: the memory is that long, was filled when it was made, and no copy is running.
        Ok(unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) })
    }

    /// Sets every byte, after everything enqueued so far.
    pub fn fill(&mut self, byte: u8) -> Result<(), NativeError> {
        self.stream.synchronize().map_err(failed("waiting for a copy"))?;
        // SAFETY: the memory is that long, and no copy is running.
        unsafe { self.start.write_bytes(byte, self.bytes) };
        Ok(())
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(self.stream.synchronize());
        if self.pageable.is_none() {
            // SAFETY: made by `malloc_host`, freed once, and no copy is running.
            context.record_err(unsafe { result::free_host(self.start.as_ptr().cast()) });
        }
    }
}

/// Copies on a machine's stream, and for both directions at once on a second one that the first waits for.
#[derive(Debug)]
pub struct Transfers {
    stream: Arc<CudaStream>,
    back: Arc<CudaStream>,
}

impl Transfers {
    /// Takes a second stream.
    pub fn new(machine: &Machine) -> Result<Self, NativeError> {
        let stream = machine.stream().clone();
        let back = stream.fork().map_err(failed("creating a stream"))?;
        Ok(Self { stream, back })
    }

    /// Memory with this content.
    pub fn host(&self, kind: HostKind, content: &[u8]) -> Result<HostMemory, NativeError> {
        if content.is_empty() {
            return Err(NativeError::InvalidSize { what: "a buffer's length", limit: isize::MAX as usize, value: 0 });
        }
        HostMemory::new(&self.stream, kind, content)
    }

    /// Enqueues a copy to the device.
    pub fn to_device(&self, from: &HostMemory, to: &mut Buffer) -> Result<(), NativeError> {
        let address = to.memory.address("to copy to", &self.stream, from.bytes)?;
        up(&self.stream, from, address).map_err(failed("copying to the device"))
    }

    /// Enqueues a copy to the host.
    pub fn to_host(&self, from: &Buffer, to: &mut HostMemory) -> Result<(), NativeError> {
        let address = from.memory.address("to copy from", &self.stream, to.bytes)?;
        down(&self.stream, address, to).map_err(failed("copying from the device"))
    }

    /// Enqueues a copy to the device and one to the host that do not wait for each other. Copies of pageable memory occupy
    /// the thread that asks for them, so each gets one.
    pub fn both(
        &self,
        from: &HostMemory,
        to: &mut Buffer,
        from_device: &Buffer,
        to_host: &mut HostMemory,
    ) -> Result<(), NativeError> {
        let failed = failed("copying both ways");
        let (there, here) = (
            to.memory.address("to copy to", &self.stream, from.bytes)?,
            from_device.memory.address("to copy from", &self.stream, to_host.bytes)?,
        );
        self.back.join(&self.stream).map_err(&failed)?;
        let copied = if from.pageable.is_some() {
            thread::scope(|scope| {
                let other = scope.spawn(|| down(&self.back, here, to_host));
                let copied = up(&self.stream, from, there);
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(copied)
            })
        } else {
            down(&self.back, here, to_host).and_then(|()| up(&self.stream, from, there))
        };
        copied.and_then(|()| self.stream.join(&self.back)).map_err(failed)
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.back.context().record_err(self.back.synchronize());
    }
}

fn up(stream: &CudaStream, from: &HostMemory, to: u64) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    // SAFETY: both sides were checked to be that long, and whoever frees either waits for the stream first.
    unsafe {
        let from = slice::from_raw_parts(from.start.as_ptr(), from.bytes);
        result::memcpy_htod_async(to, from, stream.cu_stream())
    }
}

fn down(stream: &CudaStream, from: u64, to: &mut HostMemory) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    // SAFETY: as above; nothing else reads or writes the memory before it has waited.
    unsafe {
        let to = slice::from_raw_parts_mut(to.start.as_ptr(), to.bytes);
        result::memcpy_dtoh_async(to, from, stream.cu_stream())
    }
}

fn refused() -> NativeError {
    NativeError::Driver {
        doing: "allocating pinned memory",
        name: "CUDA_SUCCESS".into(),
        text: "no memory came with it".into(),
    }
}
