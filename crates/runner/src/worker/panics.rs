//! Panics, remembered with their threads: a device thread that panics tells nobody, and what is computed in its process
//! afterwards is wrong without an error.

use std::sync::{Mutex, OnceLock, PoisonError};

/// A panic that happened in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panic {
    /// The thread's name.
    pub thread: String,
    /// What it said and where.
    pub message: String,
}

impl Panic {
    /// Whether the thread belongs to a device.
    pub fn on_a_device_thread(&self) -> bool {
        self.thread.starts_with("DSD-") || self.thread.starts_with("DSU-")
    }
}

static PANICS: Mutex<Vec<Panic>> = Mutex::new(Vec::new());

/// Begins to remember panics; the previous hook still prints them.
pub fn remember() {
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
            let message = text.unwrap_or_else(|| "a panic without a text".into());
            lock().push(Panic { thread, message });
            previous(info);
        }));
    });
}

/// Takes the panics remembered so far.
pub fn take() -> Vec<Panic> {
    std::mem::take(&mut lock())
}

/// The first panic of a device thread, if there was one. It stays remembered: such a process is never trusted again.
pub fn on_device() -> Option<Panic> {
    lock().iter().find(|panic| panic.on_a_device_thread()).cloned()
}

fn lock() -> std::sync::MutexGuard<'static, Vec<Panic>> {
    PANICS.lock().unwrap_or_else(PoisonError::into_inner)
}
