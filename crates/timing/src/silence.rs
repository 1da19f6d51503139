//! JIT monitor: counts the log messages of a GPU runtime about compilation and autotuning, so that affected windows can
//! be discarded.

use log::{LevelFilter, Log, Metadata, Record};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Logger that counts compiled and tuned kernels.
pub struct Silence {
    compiled: AtomicU64,
    tuned: AtomicU64,
    forbidden: AtomicBool,
    /// Messages about single kernels, while a log is active.
    kernels: Mutex<Option<Vec<String>>>,
}

static SILENCE: Silence = Silence {
    compiled: AtomicU64::new(0),
    tuned: AtomicU64::new(0),
    forbidden: AtomicBool::new(false),
    kernels: Mutex::new(None),
};

/// Panic message if autotuning starts while it is disabled.
pub const FORBIDDEN: &str = "a kernel requires autotuning, which is disabled";

/// Log targets and prefixes of the runtime's compile messages.
const COMPILES: [(&str, &str); 3] = [
    ("cubecl_cuda::compute::context", "Compiling kernel"),
    ("cubecl_wgpu::backend::vulkan", "Compiling "),
    ("cubecl_wgpu::backend::base", "[cubecl-wgpu] compiling WGSL module"),
];
/// Log target of messages about single kernels, in a process whose runtime times each kernel.
const KERNELS: &str = "cubecl_common::config::logger";
const TUNES: (&str, &str) = ("cubecl_runtime::tune::tuner", "Tuning ");

impl Silence {
    /// Installs the monitor as the process's logger; later calls have no effect.
    pub fn listen() -> &'static Self {
        if log::set_logger(&SILENCE).is_ok() {
            log::set_max_level(LevelFilter::Trace);
        }
        &SILENCE
    }

    /// Makes any later autotuning panic before it begins; the runtime has no other way to prevent it.
    pub fn forbid_tuning(&self) {
        self.forbidden.store(true, Ordering::Relaxed);
    }

    /// True if autotuning panics.
    pub fn forbids_tuning(&self) -> bool {
        self.forbidden.load(Ordering::Relaxed)
    }

    /// Number of kernels compiled or tuned so far.
    pub fn disturbances(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed) + self.tuned()
    }

    /// Number of autotunings so far.
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
        let matches = |(from, prefix): (&str, &str)| {
            target == from
                && record
                    .args()
                    .as_str()
                    .map_or_else(|| record.args().to_string().starts_with(prefix), |text| text.starts_with(prefix))
        };
        if matches(TUNES) {
            self.tuned.fetch_add(1, Ordering::Relaxed);
            assert!(!self.forbids_tuning(), "{FORBIDDEN}");
        } else if COMPILES.into_iter().any(matches) {
            self.compiled.fetch_add(1, Ordering::Relaxed);
        } else if target == KERNELS
            && let Some(lines) = &mut *self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
        {
            lines.push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Log of the kernels that run while it exists, in a process whose runtime times each kernel.
pub struct HeardKernels(());

/// Messages come from a thread of the runtime; after this time without one, none is pending.
const QUIET: Duration = Duration::from_millis(100);

impl HeardKernels {
    /// Starts the log after all pending messages have arrived.
    pub fn begin() -> Self {
        let begun = Self(());
        SILENCE.set_lines(Some(Vec::new()));
        begun.wait();
        SILENCE.set_lines(Some(Vec::new()));
        begun
    }

    /// Returns the kernels since the start in execution order, each with its nanoseconds.
    pub fn end(self) -> Vec<(String, u64)> {
        self.wait();
        let lines = SILENCE.set_lines(None).unwrap_or_default();
        lines.iter().filter_map(|line| kernel(line)).collect()
    }

    fn wait(&self) {
        let count = || SILENCE.kernels.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, Vec::len);
        loop {
            let before = count();
            std::thread::sleep(QUIET);
            if count() == before {
                return;
            }
        }
    }
}

impl Silence {
    fn set_lines(&self, lines: Option<Vec<String>>) -> Option<Vec<String>> {
        std::mem::replace(&mut *self.kernels.lock().unwrap_or_else(PoisonError::into_inner), lines)
    }
}

/// Parses a line such as `| 12.3µs     | Matmul`.
fn kernel(line: &str) -> Option<(String, u64)> {
    let (time, name) = line.strip_prefix("| ")?.split_once(" | ")?;
    let time = time.trim();
    let unit = time.find(|c: char| c.is_alphabetic() || c == 'µ')?;
    let number: f64 = time[..unit].parse().ok()?;
    let nanos = match &time[unit..] {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let name = name.lines().next().unwrap_or("").trim();
    Some((name.to_owned(), (number * nanos).round() as u64))
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
        log::trace!(target: "cubecl_wgpu::backend::base", "[cubecl-wgpu] compiling WGSL module `{}`\n{}", "add", "fn");
        log::trace!(target: "cubecl_wgpu::backend::base", "something else");
        log::info!(target: "somebody::else", "Compiling kernel");
        assert_eq!(silence.disturbances() - before, 4);
    }

    #[test]
    fn kernels_are_read_from_the_runtimes_lines_while_somebody_listens() {
        Silence::listen();
        log::info!(target: KERNELS, "| 1µs        | before");
        let kernel_log = HeardKernels::begin();
        log::info!(target: KERNELS, "| 12.5µs     | Matmul<f32>");
        log::info!(target: KERNELS, "| 1.25ms     | Reduce\n  cubes (1, 2, 3)");
        log::info!(target: KERNELS, "something else");
        let expected = [("Matmul<f32>".to_owned(), 12_500), ("Reduce".to_owned(), 1_250_000)];
        assert_eq!(kernel_log.end(), expected);
    }
}
