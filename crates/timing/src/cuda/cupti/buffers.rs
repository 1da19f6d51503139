//! Buffers for CUPTI's records, reused so that none is allocated during a measurement.

use cudarc::cupti::result::{CuptiError, activity};
use cudarc::cupti::sys::{CUpti_Activity, CUpti_ActivityAttribute, CUptiResult};
use cudarc::driver::sys::CUcontext;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Buffer size of NVIDIA's samples, 8 MiB: about 35 000 kernels.
const BUFFER_BYTES: usize = 8 << 20;
/// Buffer size in words: records are aligned to 8 bytes.
const BUFFER_WORDS: usize = BUFFER_BYTES / size_of::<u64>();
/// Initial number of buffers: CUPTI fills one while another is being returned.
const INITIAL_BUFFERS: usize = 2;

type RecordBuffer = Box<[u64]>;

struct BufferPool {
    free: Vec<RecordBuffer>,
    filled: Vec<FilledBuffer>,
}

static POOL: Mutex<BufferPool> = Mutex::new(BufferPool { free: Vec::new(), filled: Vec::new() });

/// Buffer with records; returns to the pool when dropped.
pub(super) struct FilledBuffer {
    buffer: RecordBuffer,
    bytes: usize,
}

/// Registers the buffer callbacks with CUPTI.
pub(super) fn register() -> Result<(), CuptiError> {
    let first: Vec<RecordBuffer> = (0..INITIAL_BUFFERS).map(|_| zeroed()).collect();
    lock(&POOL).free.extend(first);
    let (mut enabled, mut size) = (1u8, size_of::<u8>());
    // SAFETY: the attribute is one byte, and both pointers are valid. Older versions of CUPTI do not know it and clear
    // every buffer themselves, which is correct but slower.
    let _ = unsafe {
        activity::set_attribute(
            CUpti_ActivityAttribute::CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER,
            &mut size,
            ptr::from_mut(&mut enabled).cast::<c_void>(),
        )
    };
    activity::register_callbacks(Some(buffer_requested), Some(buffer_completed))
}

/// Buffers returned since the last call.
pub(super) fn take_filled() -> Vec<FilledBuffer> {
    lock(&POOL).filled.drain(..).collect()
}

fn zeroed() -> RecordBuffer {
    vec![0; BUFFER_WORDS].into_boxed_slice()
}

/// Called by CUPTI on any thread that needs a buffer.
unsafe extern "C" fn buffer_requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    let reused = lock(&POOL).free.pop();
    let owned = Box::into_raw(reused.unwrap_or_else(zeroed));
    // SAFETY: CUPTI passes three valid pointers. It owns the buffer until it passes it to `completed`.
    unsafe {
        *buffer = owned.cast();
        *size = BUFFER_BYTES;
        // Unlimited.
        *max_records = 0;
    }
}

/// Called by CUPTI when a buffer is full or flushed. Records are not read here, possibly on the measured thread.
unsafe extern "C" fn buffer_completed(_: CUcontext, _: u32, buffer: *mut u8, _: usize, bytes: usize) {
    let words = ptr::slice_from_raw_parts_mut(buffer.cast::<u64>(), BUFFER_WORDS);
    // SAFETY: CUPTI returns each buffer of `requested` once and releases its ownership.
    let buffer = unsafe { Box::from_raw(words) };
    lock(&POOL).filled.push(FilledBuffer { buffer, bytes: bytes.min(BUFFER_BYTES) });
}

/// Locks a mutex, ignoring poison: the guarded lists are consistent between any two statements.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FilledBuffer {
    /// Calls `show` for each record. Returns true at the end of the buffer, false at a record that CUPTI has not
    /// completed.
    pub(super) fn for_each_record(&self, mut show: impl FnMut(NonNull<CUpti_Activity>)) -> Result<bool, CuptiError> {
        let start = self.buffer.as_ptr().cast::<u8>().cast_mut();
        let mut record = ptr::null_mut();
        loop {
            // SAFETY: CUPTI wrote the first `bytes` bytes, and `record` is null or the last result. The call only reads
            // the buffer, although its type is mutable.
            match unsafe { activity::get_next_record(start, self.bytes, &mut record) } {
                Ok(()) => show(NonNull::new(record).expect("CUPTI returned a record")),
                Err(CuptiError(CUptiResult::CUPTI_ERROR_MAX_LIMIT_REACHED)) => return Ok(true),
                Err(CuptiError(CUptiResult::CUPTI_ERROR_INVALID_KIND)) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for FilledBuffer {
    fn drop(&mut self) {
        // CUPTI requires zeroed buffers and writes only its records.
        self.buffer[..self.bytes.div_ceil(size_of::<u64>())].fill(0);
        lock(&POOL).free.push(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> *mut u8 {
        let (mut buffer, mut size, mut max_records) = (ptr::null_mut(), 0, 1);
        // SAFETY: three valid pointers.
        unsafe { buffer_requested(&mut buffer, &mut size, &mut max_records) };
        assert!(!buffer.is_null() && buffer.is_aligned() && (size, max_records) == (BUFFER_BYTES, 0));
        buffer
    }

    #[test]
    fn returned_buffers_are_reused_zeroed() {
        let first = request();
        // SAFETY: the buffer is at least this long and owned here until it is completed.
        unsafe { ptr::write_bytes(first, 0xAB, 1001) };
        // SAFETY: this is the requested buffer, which is not used afterwards.
        unsafe { buffer_completed(ptr::null_mut(), 0, first, BUFFER_BYTES, 1001) };
        let filled = take_filled();
        assert_eq!(filled.iter().map(|f| f.bytes).collect::<Vec<_>>(), [1001]);
        assert!(take_filled().is_empty());
        drop(filled);
        let second = request();
        assert_eq!(first, second);
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(second, BUFFER_BYTES) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        // SAFETY: as above.
        unsafe { buffer_completed(ptr::null_mut(), 0, second, BUFFER_BYTES, 0) };
    }
}
