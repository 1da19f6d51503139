//! Bindings to CUPTI: activity records and memory counters.

mod buffers;
mod records;
mod traffic;

pub use traffic::{MemoryTraffic, TrafficMeter};

use super::Activities;
use crate::Failure;
use cudarc::cupti::result::{self, CuptiError, activity};
use cudarc::cupti::sys::{self, CUpti_ActivityKind as Kind, CUptiResult as Status};
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock, TryLockError};

/// Initialized CUPTI; one per process.
#[derive(Debug)]
pub struct Cupti {
    recording_lock: Mutex<()>,
}

/// Kinds of records. Each enabled kind costs the process time, so enable only those that are needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActivityKinds {
    /// Kernels, which may still run concurrently.
    pub kernels: bool,
    /// Copies within a device and between host and device, and memsets.
    pub copies: bool,
    /// Allocations and frees.
    pub memory: bool,
    /// Driver API calls.
    pub calls: bool,
}

impl ActivityKinds {
    /// Device activities.
    pub const DEVICE: Self = Self { kernels: true, copies: true, memory: false, calls: false };
    /// All kinds.
    pub const ALL: Self = Self { memory: true, calls: true, ..Self::DEVICE };

    fn iter(self) -> impl Iterator<Item = Kind> {
        [
            (self.kernels, Kind::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
            (self.copies, Kind::CUPTI_ACTIVITY_KIND_MEMCPY),
            (self.copies, Kind::CUPTI_ACTIVITY_KIND_MEMSET),
            (self.memory, Kind::CUPTI_ACTIVITY_KIND_MEMORY2),
            (self.calls, Kind::CUPTI_ACTIVITY_KIND_DRIVER),
        ]
        .into_iter()
        .filter_map(|(enabled, kind)| enabled.then_some(kind))
    }
}

impl Cupti {
    /// Loads and initializes CUPTI, once per process, or returns why it is not available.
    pub fn load() -> Result<&'static Self, String> {
        static CUPTI: OnceLock<Result<Cupti, String>> = OnceLock::new();
        CUPTI.get_or_init(initialize).as_ref().map_err(Clone::clone)
    }

    /// Records activities of the process while `body` runs.
    ///
    /// `body` must synchronize everything it launches, even on failure: activities that are still running afterwards
    /// count as dropped, or appear in the next recording.
    pub fn record<T>(
        &self,
        kinds: ActivityKinds,
        body: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, Activities), Failure> {
        let _turn = match self.recording_lock.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err("CUPTI is already recording: a process can have one recording at a time".into());
            }
        };
        let recording = ActivityRecording::start(kinds)?;
        let result = body()?;
        Ok((result, recording.finish()?))
    }

    /// Current time on the axis of the records.
    pub fn now(&self) -> u64 {
        let mut now = 0;
        // SAFETY: writes one integer through a valid pointer. The call succeeded once in `start` and cannot fail later.
        let _ = unsafe { result::get_timestamp(&mut now) };
        now
    }
}

/// Enabled record kinds; disabled when dropped.
struct ActivityRecording {
    kinds: ActivityKinds,
    finished: bool,
}

impl ActivityRecording {
    fn start(kinds: ActivityKinds) -> Result<Self, String> {
        let recording = Self { kinds, finished: false };
        for kind in kinds.iter() {
            activity::enable(kind).map_err(|error| error_message("enabling records", error))?;
        }
        Ok(recording)
    }

    fn finish(mut self) -> Result<Activities, String> {
        self.finished = true;
        let closed = self.close();
        let filled = buffers::take_filled();
        let lost = closed?;
        let mut activities = records::read(&filled).map_err(|error| error_message("reading records", error))?;
        activities.dropped += lost;
        Ok(activities)
    }

    /// Collects all records and disables the kinds; returns the number of records that CUPTI had to drop.
    fn close(&self) -> Result<u64, String> {
        // Without this flag CUPTI would retain a whole buffer for one incomplete record, and its records would appear
        // in the next recording. With it, recordings need no separation by time; an incomplete record counts as
        // dropped.
        const FORCED: u32 = sys::CUpti_ActivityFlag::CUPTI_ACTIVITY_FLAG_FLUSH_FORCED as u32;
        let flushed = activity::flush_all(FORCED);
        for kind in self.kinds.iter() {
            activity::disable(kind).map_err(|error| error_message("disabling records", error))?;
        }
        flushed.map_err(|error| error_message("collecting records", error))?;
        let mut lost = 0;
        // SAFETY: writes one integer through a valid pointer; a null context selects all contexts.
        unsafe { activity::get_num_dropped_records(std::ptr::null_mut(), 0, &mut lost) }
            .map_err(|error| error_message("counting dropped records", error))?;
        Ok(lost as u64)
    }
}

impl Drop for ActivityRecording {
    fn drop(&mut self) {
        if !self.finished {
            // The error of the body takes precedence.
            let _ = self.close();
            drop(buffers::take_filled());
        }
    }
}

/// Checks that the libraries can be loaded; the error names the missing one.
fn check_libraries() -> Result<(), String> {
    // SAFETY: opening a library runs its initializers. These libraries are NVIDIA's and intended for this; the bindings
    // open the same files on their first call, and would panic without them.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err("CUPTI needs the NVIDIA driver, and libcuda.so was not found".to_owned());
    }
    // SAFETY: as above.
    if !unsafe { sys::is_culib_present() } {
        return Err("libcupti.so was not found: install the CUDA toolkit and add its extras/CUPTI/lib64 to \
                    LD_LIBRARY_PATH"
            .to_owned());
    }
    Ok(())
}

fn initialize() -> Result<Cupti, String> {
    check_libraries()?;
    // Subscribing detects other tools: a process can have one subscriber, and two tools would take each other's
    // records. The handle is never released, and no callback is enabled, so it costs nothing.
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: `subscriber` is a valid pointer, the callback ignores its arguments, and no user data is passed.
    unsafe { result::subscribe(&mut subscriber, Some(ignore_callback), std::ptr::null_mut()) }
        .map_err(|error| error_message("subscribing", error))?;
    result::set_thread_id_type(sys::CUpti_ActivityThreadIdType::CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
        .map_err(|error| error_message("setting the type of thread ids", error))?;
    buffers::register().map_err(|error| error_message("registering buffers", error))?;
    let mut now = 0;
    // SAFETY: writes one integer through a valid pointer.
    unsafe { result::get_timestamp(&mut now) }.map_err(|error| error_message("reading the timestamp", error))?;
    // A first recording, so that errors and one-time costs occur here.
    ActivityRecording::start(ActivityKinds::DEVICE)?.finish()?;
    Ok(Cupti { recording_lock: Mutex::new(()) })
}

unsafe extern "C" fn ignore_callback(
    _: *mut c_void,
    _: sys::CUpti_CallbackDomain,
    _: sys::CUpti_CallbackId,
    _: *const c_void,
) {
}

/// Formats an error with a remedy, if there is one.
fn error_message(doing: &str, error: CuptiError) -> String {
    let reason = match error.0 {
        Status::CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED | Status::CUPTI_ERROR_DISABLED => {
            "another tool uses it, such as Nsight or cuda-gdb, and it supports one at a time; run without that tool"
        }
        Status::CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
        | Status::CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES => {
            "the driver restricts profiling to administrators; https://developer.nvidia.com/ERR_NVGPUCTRPERM explains \
             how to allow it"
        }
        Status::CUPTI_ERROR_NOT_INITIALIZED => "no compatible driver was found",
        Status::CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED => "it is not supported under confidential computing",
        _ => return format!("CUPTI failed while {doing}: {}", error_name(error)),
    };
    format!("CUPTI failed while {doing}: {reason} ({})", error_name(error))
}

fn error_name(error: CuptiError) -> String {
    error.error_string().map_or_else(|_| format!("status {}", error.0 as u32), |name| name.to_string_lossy().into())
}
