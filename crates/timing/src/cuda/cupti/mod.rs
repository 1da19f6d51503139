//! NVIDIA's profiling interface: its records of activity, and the counters of a GPU's memory.

mod buffers;
mod records;
mod traffic;

pub use traffic::{Traffic, TrafficMeter};

use super::Activities;
use crate::Failure;
use cudarc::cupti::result::{self, CuptiError, activity};
use cudarc::cupti::sys::{self, CUpti_ActivityKind as Kind, CUptiResult as Status};
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock, TryLockError};

/// CUPTI, ready to record. There is one per process.
#[derive(Debug)]
pub struct Cupti {
    turn: Mutex<()>,
}

/// What to record. Every kind costs the process something while it is on, so switch on what is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Kernels, without keeping them from overlapping.
    pub kernels: bool,
    /// Copies within a device and to and from it, and fills.
    pub copies: bool,
    /// Allocations and their ends.
    pub memory: bool,
    /// Calls into the driver.
    pub calls: bool,
}

impl Kinds {
    /// What runs on a device.
    pub const DEVICE: Self = Self { kernels: true, copies: true, memory: false, calls: false };
    /// Everything.
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
        .filter_map(|(wanted, kind)| wanted.then_some(kind))
    }
}

impl Cupti {
    /// CUPTI, loaded and told where to put records; or why there are none to be had. Asked once per process.
    pub fn load() -> Result<&'static Self, String> {
        static CUPTI: OnceLock<Result<Cupti, String>> = OnceLock::new();
        CUPTI.get_or_init(start).as_ref().map_err(Clone::clone)
    }

    /// Records what happens in the process while `body` runs.
    ///
    /// `body` waits for whatever it launches, also when it fails: what is still running when it returns counts as
    /// dropped, or may turn up in the next recording.
    pub fn record<T>(
        &self,
        kinds: Kinds,
        body: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, Activities), Failure> {
        let _turn = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err("CUPTI is recording already: one recording of a process at a time".into());
            }
        };
        let recording = Recording::start(kinds)?;
        let answer = body()?;
        Ok((answer, recording.finish()?))
    }

    /// Now, on the time axis of the records.
    pub fn now(&self) -> u64 {
        let mut now = 0;
        // SAFETY: writes one integer through a valid pointer. It answered once in `start`, and has no way to fail later.
        let _ = unsafe { result::get_timestamp(&mut now) };
        now
    }
}

/// Kinds that are switched on; off again when dropped, whatever happened in between.
struct Recording {
    kinds: Kinds,
    finished: bool,
}

impl Recording {
    fn start(kinds: Kinds) -> Result<Self, String> {
        let recording = Self { kinds, finished: false };
        for kind in kinds.iter() {
            activity::enable(kind).map_err(|error| explain("switching on records", error))?;
        }
        Ok(recording)
    }

    fn finish(mut self) -> Result<Activities, String> {
        self.finished = true;
        let closed = self.close();
        let filled = buffers::take_filled();
        let lost = closed?;
        let mut activities = records::read(&filled).map_err(|error| explain("reading records", error))?;
        activities.dropped += lost;
        Ok(activities)
    }

    /// Collects every record and switches off; answers how many CUPTI had no room for.
    fn close(&self) -> Result<u64, String> {
        // Forced, because otherwise CUPTI would keep back a whole buffer for one record that is not complete, and its
        // records would turn up in the next recording. So nothing is ever left over, and nothing needs to be told apart
        // by its time. An incomplete record is counted as dropped instead.
        const FORCED: u32 = sys::CUpti_ActivityFlag::CUPTI_ACTIVITY_FLAG_FLUSH_FORCED as u32;
        let flushed = activity::flush_all(FORCED);
        for kind in self.kinds.iter() {
            activity::disable(kind).map_err(|error| explain("switching off records", error))?;
        }
        flushed.map_err(|error| explain("collecting records", error))?;
        let mut lost = 0;
        // SAFETY: writes one integer through a valid pointer; no context means all of them.
        unsafe { activity::get_num_dropped_records(std::ptr::null_mut(), 0, &mut lost) }
            .map_err(|error| explain("counting dropped records", error))?;
        Ok(lost as u64)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.finished {
            // The body's own error is the one to tell.
            let _ = self.close();
            drop(buffers::take_filled());
        }
    }
}

/// Whether the libraries can be loaded, or which cannot.
fn present() -> Result<(), String> {
    // SAFETY: opening a library runs its initializers; these are NVIDIA's own, meant to be opened this way, and the
    // bindings open the same files on their first call, which would panic without them.
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

fn start() -> Result<Cupti, String> {
    present()?;
    // Only one tool of a process can subscribe, and two would take each other's records: subscribing asks for the place,
    // and the handle is never given back. No callback is switched on, so it costs nothing.
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: `subscriber` is a valid place, the callback ignores its arguments, and no user data is passed.
    unsafe { result::subscribe(&mut subscriber, Some(unused), std::ptr::null_mut()) }
        .map_err(|error| explain("subscribing", error))?;
    result::set_thread_id_type(sys::CUpti_ActivityThreadIdType::CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
        .map_err(|error| explain("choosing numbers of threads", error))?;
    buffers::register().map_err(|error| explain("registering buffers", error))?;
    let mut now = 0;
    // SAFETY: writes one integer through a valid pointer.
    unsafe { result::get_timestamp(&mut now) }.map_err(|error| explain("asking for the time", error))?;
    // What would refuse the first window refuses here, and what is slow once is slow here.
    Recording::start(Kinds::DEVICE)?.finish()?;
    Ok(Cupti { turn: Mutex::new(()) })
}

unsafe extern "C" fn unused(_: *mut c_void, _: sys::CUpti_CallbackDomain, _: sys::CUpti_CallbackId, _: *const c_void) {}

/// A sentence for the person who can act.
fn explain(doing: &str, error: CuptiError) -> String {
    let why = match error.0 {
        Status::CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED | Status::CUPTI_ERROR_DISABLED => {
            "another tool holds it, such as Nsight or cuda-gdb, and it serves one at a time; run without that tool"
        }
        Status::CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
        | Status::CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES => {
            "the driver keeps profiling to administrators; https://developer.nvidia.com/ERR_NVGPUCTRPERM says how to \
             allow it"
        }
        Status::CUPTI_ERROR_NOT_INITIALIZED => "it found no driver that it can work with",
        Status::CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED => "it does not work under confidential computing",
        _ => return format!("CUPTI failed while {doing}: {}", name(error)),
    };
    format!("CUPTI failed while {doing}: {why} ({})", name(error))
}

fn name(error: CuptiError) -> String {
    error.error_string().map_or_else(|_| format!("status {}", error.0 as u32), |name| name.to_string_lossy().into())
}
