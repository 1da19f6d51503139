//! Counts what a GPU runtime says about compiling and tuning, so that a window in which it did so can be thrown away.

use log::{LevelFilter, Log, Metadata, Record};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A logger that counts kernels compiled and tuned.
pub struct Silence {
    compiled: AtomicU64,
    tuned: AtomicU64,
    forbidden: AtomicBool,
}

static SILENCE: Silence =
    Silence { compiled: AtomicU64::new(0), tuned: AtomicU64::new(0), forbidden: AtomicBool::new(false) };

/// What the panic says that ends a tuning which was forbidden.
pub const FORBIDDEN: &str = "a kernel would have to be tuned, and tuning is forbidden";

/// Where the runtime's own lines come from and how they begin.
const COMPILES: [(&str, &str); 2] =
    [("cubecl_cuda::compute::context", "Compiling kernel"), ("cubecl_wgpu::backend::vulkan", "Compiling ")];
const TUNES: (&str, &str) = ("cubecl_runtime::tune::tuner", "Tuning ");

impl Silence {
    /// Installs the counter as the process's logger; harmless when called again.
    pub fn listen() -> &'static Self {
        if log::set_logger(&SILENCE).is_ok() {
            log::set_max_level(LevelFilter::Trace);
        }
        &SILENCE
    }

    /// From now on a tuning panics before it begins: the runtime has no other way to be told.
    pub fn forbid_tuning(&self) {
        self.forbidden.store(true, Ordering::Relaxed);
    }

    /// Whether tunings panic.
    pub fn forbids_tuning(&self) -> bool {
        self.forbidden.load(Ordering::Relaxed)
    }

    /// Kernels compiled or tuned so far.
    pub fn disturbances(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed) + self.tuned()
    }

    /// Tunings so far.
    pub fn tuned(&self) -> u64 {
        self.tuned.load(Ordering::Relaxed)
    }
}

impl Log for Silence {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("cubecl_")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let target = record.target();
        let says = |(from, start): (&str, &str)| {
            target == from
                && record
                    .args()
                    .as_str()
                    .map_or_else(|| record.args().to_string().starts_with(start), |text| text.starts_with(start))
        };
        if says(TUNES) {
            self.tuned.fetch_add(1, Ordering::Relaxed);
            assert!(!self.forbids_tuning(), "{FORBIDDEN}");
        } else if COMPILES.into_iter().any(says) {
            self.compiled.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_runtimes_own_lines_count() {
        let silence = Silence::listen();
        let before = silence.disturbances();
        log::info!(target: "cubecl_runtime::tune::tuner", "Tuning matmul-{}", 4);
        log::trace!(target: "cubecl_cuda::compute::context", "Compiling kernel");
        log::debug!(target: "cubecl_wgpu::backend::vulkan", "Compiling {}", "add");
        log::info!(target: "somebody::else", "Compiling kernel");
        assert_eq!(silence.disturbances() - before, 3);
    }
}
