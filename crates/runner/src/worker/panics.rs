//! Record of panics and their threads. A device thread that panics reports no error, although later results of its
//! process are wrong.

use std::sync::{Mutex, OnceLock, PoisonError};

/// Panic in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedPanic {
    /// Name of the thread.
    pub thread: String,
    /// Panic message.
    pub message: String,
}

impl RecordedPanic {
    /// True if the thread belongs to a device.
    pub(super) fn is_on_device_thread(&self) -> bool {
        self.thread.starts_with("DSD-") || self.thread.starts_with("DSU-")
    }
}

static PANICS: Mutex<Vec<RecordedPanic>> = Mutex::new(Vec::new());

/// Installs a hook that records panics; the previous hook still prints them.
pub(super) fn install_hook() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
            let payload = info.payload();
            let text = payload
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| payload.downcast_ref::<String>().cloned());
            let message = text.unwrap_or_else(|| "panic without a message".into());
            lock().push(RecordedPanic { thread, message });
            previous(info);
        }));
    });
}

/// Removes and returns the panics recorded so far.
pub(super) fn take_panics() -> Vec<RecordedPanic> {
    std::mem::take(&mut lock())
}

/// First panic of a device thread, if any. It stays recorded, because the process cannot be trusted again.
pub(super) fn device_panic() -> Option<RecordedPanic> {
    lock().iter().find(|panic| panic.is_on_device_thread()).cloned()
}

fn lock() -> std::sync::MutexGuard<'static, Vec<RecordedPanic>> {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner)
}
