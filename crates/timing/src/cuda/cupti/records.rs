//! Conversion of CUPTI's records.

use super::buffers::FilledBuffer;
use crate::cuda::{Activities, CopyActivity, DriverCall, KernelActivity, MemoryActivity};
use cudarc::cupti::result::{CuptiError, get_callback_name};
use cudarc::cupti::sys::{
    CUpti_Activity, CUpti_ActivityAPI, CUpti_ActivityKernel10, CUpti_ActivityKind as Kind, CUpti_ActivityMemcpy6,
    CUpti_ActivityMemory4, CUpti_ActivityMemset4, CUpti_CallbackDomain,
};
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Reads a single field of a record.
///
/// The layouts are from CUDA 13.0. Libraries of other versions write other layouts, but NVIDIA only appends fields:
/// those read here have equal offsets in every layout from CUDA 11 (`Kernel5`, `Memcpy4`, `Memset3`, `Memory2`) to
/// 13.4, and each library writes at least them. A reference to the whole structure would claim more than an older
/// library wrote.
macro_rules! field {
    ($record:expr, $layout:ty, $name:ident) => {
        // SAFETY: the caller checked that the record is of the kind with this layout; see above for its version.
        unsafe { (&raw const (*$record.as_ptr().cast::<$layout>()).$name).read_unaligned() }
    };
    // Enumerations are read as integers: a newer library may have more variants.
    ($record:expr, $layout:ty, $name:ident as $number:ty) => {
        // SAFETY: as above.
        unsafe { (&raw const (*$record.as_ptr().cast::<$layout>()).$name).cast::<$number>().read_unaligned() }
    };
}

/// Reads all records of the buffers. Records without a time and incomplete buffers count as dropped.
pub(super) fn read(buffers: &[FilledBuffer]) -> Result<Activities, CuptiError> {
    let mut reader = RecordReader::default();
    for buffer in buffers {
        if !buffer.for_each_record(|record| reader.add(record))? {
            reader.activities.dropped += 1;
        }
    }
    Ok(reader.activities)
}

#[derive(Default)]
struct RecordReader {
    activities: Activities,
    /// Kernel names by pointer: all records of a kernel share one string.
    names: HashMap<*const c_char, Arc<str>>,
    functions: HashMap<u32, Arc<str>>,
}

impl RecordReader {
    fn add(&mut self, record: NonNull<CUpti_Activity>) {
        // Not read as an enumeration; see `field!`.
        let kind = field!(record, CUpti_Activity, kind as u32);
        const KERNEL: u32 = Kind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL as u32;
        const MEMCPY: u32 = Kind::CUPTI_ACTIVITY_KIND_MEMCPY as u32;
        const MEMSET: u32 = Kind::CUPTI_ACTIVITY_KIND_MEMSET as u32;
        const MEMORY: u32 = Kind::CUPTI_ACTIVITY_KIND_MEMORY2 as u32;
        const DRIVER: u32 = Kind::CUPTI_ACTIVITY_KIND_DRIVER as u32;
        match kind {
            KERNEL => self.kernel(record),
            MEMCPY => self.memcpy(record),
            MEMSET => self.memset(record),
            MEMORY => self.memory(record),
            DRIVER => self.call(record),
            // Some kinds enable others, such as CUPTI's own overhead.
            _ => {}
        }
    }

    fn kernel(&mut self, record: NonNull<CUpti_Activity>) {
        let (start_ns, end_ns) =
            (field!(record, CUpti_ActivityKernel10, start), field!(record, CUpti_ActivityKernel10, end));
        if !self.check_times(start_ns, end_ns) {
            return;
        }
        let name = self.name(field!(record, CUpti_ActivityKernel10, name));
        self.activities.kernels.push(KernelActivity {
            name,
            start_ns,
            end_ns,
            stream: field!(record, CUpti_ActivityKernel10, streamId),
            correlation: field!(record, CUpti_ActivityKernel10, correlationId),
        });
    }

    fn memcpy(&mut self, record: NonNull<CUpti_Activity>) {
        let (start_ns, end_ns) =
            (field!(record, CUpti_ActivityMemcpy6, start), field!(record, CUpti_ActivityMemcpy6, end));
        if self.check_times(start_ns, end_ns) {
            self.activities.copies.push(CopyActivity {
                what: copy_direction(field!(record, CUpti_ActivityMemcpy6, copyKind)),
                bytes: field!(record, CUpti_ActivityMemcpy6, bytes),
                start_ns,
                end_ns,
                stream: field!(record, CUpti_ActivityMemcpy6, streamId),
            });
        }
    }

    fn memset(&mut self, record: NonNull<CUpti_Activity>) {
        let (start_ns, end_ns) =
            (field!(record, CUpti_ActivityMemset4, start), field!(record, CUpti_ActivityMemset4, end));
        if self.check_times(start_ns, end_ns) {
            self.activities.copies.push(CopyActivity {
                what: "memset",
                bytes: field!(record, CUpti_ActivityMemset4, bytes),
                start_ns,
                end_ns,
                stream: field!(record, CUpti_ActivityMemset4, streamId),
            });
        }
    }

    fn memory(&mut self, record: NonNull<CUpti_Activity>) {
        const FREED: u32 = 2;
        self.activities.memory.push(MemoryActivity {
            address: field!(record, CUpti_ActivityMemory4, address),
            bytes: field!(record, CUpti_ActivityMemory4, bytes),
            freed: field!(record, CUpti_ActivityMemory4, memoryOperationType as u32) == FREED,
            at_ns: field!(record, CUpti_ActivityMemory4, timestamp),
            kind: memory_kind(field!(record, CUpti_ActivityMemory4, memoryKind as u32)),
        });
    }

    fn call(&mut self, record: NonNull<CUpti_Activity>) {
        let id = field!(record, CUpti_ActivityAPI, cbid);
        self.activities.calls.push(DriverCall {
            name: self.functions.entry(id).or_insert_with(|| driver_function(id)).clone(),
            start_ns: field!(record, CUpti_ActivityAPI, start),
            end_ns: field!(record, CUpti_ActivityAPI, end),
            thread: field!(record, CUpti_ActivityAPI, threadId),
            correlation: field!(record, CUpti_ActivityAPI, correlationId),
        });
    }

    /// Checks the times of a record. CUPTI leaves a time at zero if it had no device memory for it, or if the activity
    /// has not ended.
    fn check_times(&mut self, start_ns: u64, end_ns: u64) -> bool {
        let timed = start_ns > 0 && end_ns >= start_ns;
        self.activities.dropped += u64::from(!timed);
        timed
    }

    fn name(&mut self, name: *const c_char) -> Arc<str> {
        if name.is_null() {
            return "unnamed".into();
        }
        // SAFETY: CUPTI retains kernel names, null-terminated, as long as it may show them.
        let text = || unsafe { CStr::from_ptr(name) }.to_string_lossy().into();
        self.names.entry(name).or_insert_with(text).clone()
    }
}

fn driver_function(id: u32) -> Arc<str> {
    let mut name = ptr::null();
    // SAFETY: writes one pointer through a valid pointer.
    match unsafe { get_callback_name(CUpti_CallbackDomain::CUPTI_CB_DOMAIN_DRIVER_API, id, &mut name) } {
        // SAFETY: the name is a constant of CUPTI.
        Ok(()) if !name.is_null() => unsafe { CStr::from_ptr(name) }.to_string_lossy().into(),
        _ => format!("driver call {id}").into(),
    }
}

/// Names the values of `CUpti_ActivityMemcpyKind`.
fn copy_direction(kind: u8) -> &'static str {
    match kind {
        1 => "memcpy host to device",
        2 => "memcpy device to host",
        3..=7 => "memcpy of an array",
        8 => "memcpy device to device",
        9 => "memcpy host to host",
        10 => "memcpy peer to peer",
        _ => "memcpy",
    }
}

/// Names the values of `CUpti_ActivityMemoryKind`.
fn memory_kind(kind: u32) -> &'static str {
    match kind {
        1 => "pageable",
        2 => "pinned",
        3 | 6 => "device",
        4 => "array",
        5 | 7 => "managed",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cudarc::cupti::sys::*;
    use std::mem::{offset_of, zeroed};

    fn reader_of<T>(record: &T) -> RecordReader {
        let mut reader = RecordReader::default();
        reader.add(NonNull::from(record).cast());
        reader
    }

    fn kernel(start: u64, end: u64) -> CUpti_ActivityKernel10 {
        // SAFETY: integers, null pointers and enumerations with a zero variant.
        let mut record: CUpti_ActivityKernel10 = unsafe { zeroed() };
        (record.kind, record.name) = (Kind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, c"spin".as_ptr());
        (record.start, record.end, record.streamId, record.correlationId) = (start, end, 7, 42);
        record
    }

    #[test]
    fn kernel_record_is_read() {
        let expected = KernelActivity { name: "spin".into(), start_ns: 1000, end_ns: 1500, stream: 7, correlation: 42 };
        let read = reader_of(&kernel(1000, 1500)).activities;
        assert_eq!(read, Activities { kernels: vec![expected], ..Activities::default() });
    }

    #[test]
    fn untimed_kernels_are_counted_as_dropped() {
        for (start, end) in [(0, 0), (1000, 0), (0, 1500), (1500, 1000)] {
            let read = reader_of(&kernel(start, end)).activities;
            assert_eq!(read, Activities { dropped: 1, ..Activities::default() }, "{start}..{end}");
        }
    }

    #[test]
    fn copy_memset_and_memory_records_are_read() {
        // SAFETY: as above.
        let mut copy: CUpti_ActivityMemcpy6 = unsafe { zeroed() };
        (copy.kind, copy.copyKind, copy.bytes) = (Kind::CUPTI_ACTIVITY_KIND_MEMCPY, 2, 4096);
        (copy.start, copy.end, copy.streamId) = (10, 30, 13);
        let expected =
            CopyActivity { what: "memcpy device to host", bytes: 4096, start_ns: 10, end_ns: 30, stream: 13 };
        assert_eq!(reader_of(&copy).activities.copies, [expected]);

        // SAFETY: as above.
        let mut fill: CUpti_ActivityMemset4 = unsafe { zeroed() };
        (fill.kind, fill.bytes, fill.start, fill.end) = (Kind::CUPTI_ACTIVITY_KIND_MEMSET, 64, 5, 6);
        let expected = CopyActivity { what: "memset", bytes: 64, start_ns: 5, end_ns: 6, stream: 0 };
        assert_eq!(reader_of(&fill).activities.copies, [expected]);

        // SAFETY: as above.
        let mut memory: CUpti_ActivityMemory4 = unsafe { zeroed() };
        memory.kind = Kind::CUPTI_ACTIVITY_KIND_MEMORY2;
        memory.memoryOperationType = CUpti_ActivityMemoryOperationType::CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
        memory.memoryKind = CUpti_ActivityMemoryKind::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        (memory.address, memory.bytes, memory.timestamp) = (0x7000, 512, 99);
        let expected = MemoryActivity { address: 0x7000, bytes: 512, freed: true, at_ns: 99, kind: "device" };
        assert_eq!(reader_of(&memory).activities.memory, [expected]);
    }

    #[test]
    fn field_offsets_match_older_versions() {
        macro_rules! places {
            ($layout:ty: $($field:ident),+) => {
                [$(offset_of!($layout, $field)),+]
            };
        }
        macro_rules! kernel {
            ($layout:ty) => {
                places!($layout: kind, start, end, streamId, correlationId, name)
            };
        }
        macro_rules! memcpy {
            ($layout:ty) => {
                places!($layout: kind, copyKind, bytes, start, end, streamId)
            };
        }
        macro_rules! memset {
            ($layout:ty) => {
                places!($layout: kind, bytes, start, end, streamId)
            };
        }
        macro_rules! memory {
            ($layout:ty) => {
                places!($layout: kind, memoryOperationType, memoryKind, address, bytes, timestamp)
            };
        }
        assert_eq!(kernel!(CUpti_ActivityKernel5), kernel!(CUpti_ActivityKernel10));
        assert_eq!(kernel!(CUpti_ActivityKernel7), kernel!(CUpti_ActivityKernel10));
        assert_eq!(kernel!(CUpti_ActivityKernel9), kernel!(CUpti_ActivityKernel10));
        assert_eq!(memcpy!(CUpti_ActivityMemcpy4), memcpy!(CUpti_ActivityMemcpy6));
        assert_eq!(memcpy!(CUpti_ActivityMemcpy5), memcpy!(CUpti_ActivityMemcpy6));
        assert_eq!(memset!(CUpti_ActivityMemset3), memset!(CUpti_ActivityMemset4));
        assert_eq!(memory!(CUpti_ActivityMemory2), memory!(CUpti_ActivityMemory4));
        assert_eq!(memory!(CUpti_ActivityMemory3), memory!(CUpti_ActivityMemory4));
    }
}
