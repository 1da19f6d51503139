//! Counts what a GPU runtime says about compiling and tuning, so that a window in which it did so can be thrown away.

use log::{LevelFilter, Log, Metadata, Record};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A logger that counts kernels compiled and tuned.
pub struct Silence {
    compiled: AtomicU64,
    tuned: AtomicU64,
    forbidden: AtomicBool,
    /// Lines about single kernels, while somebody wants them.
    kernels: Mutex<Option<Vec<String>>>,
}

static SILENCE: Silence = Silence {
    compiled: AtomicU64::new(0),
    tuned: AtomicU64::new(0),
    forbidden: AtomicBool::new(false),
    kernels: Mutex::new(None),
};

/// What the panic says that ends a tuning which was forbidden.
pub const FORBIDDEN: &str = "a kernel would have to be tuned, and tuning is forbidden";

/// Where the runtime's own lines come from and how they begin.
const COMPILES: [(&str, &str); 3] = [
    ("cubecl_cuda::compute::context", "Compiling kernel"),
    ("cubecl_wgpu::backend::vulkan", "Compiling "),
    ("cubecl_wgpu::backend::base", "[cubecl-wgpu] compiling WGSL module"),
];
/// Where lines about single kernels come from, in a process whose runtime is told to time each.
const KERNELS: &str = "cubecl_common::config::logger";
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
        } else if target == KERNELS
            && let Some(lines) = &mut *self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
        {
            lines.push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// The kernels that the runtime names while this is alive, in a process whose runtime was told to time each of them.
pub struct HeardKernels(());

/// Lines come from a thread of the runtime's own; when none has come for so long, none is on its way.
const QUIET: Duration = Duration::from_millis(100);

impl HeardKernels {
    /// Begins to listen, once the lines about everything before have come.
    pub fn begin() -> Self {
        let begun = Self(());
        SILENCE.set_lines(Some(Vec::new()));
        begun.wait();
        SILENCE.set_lines(Some(Vec::new()));
        begun
    }

    /// The kernels since then in the order in which they ran, each with its nanoseconds.
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

/// A line such as `| 12.3µs     | Matmul`.
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
        let heard = HeardKernels::begin();
        log::info!(target: KERNELS, "| 12.5µs     | Matmul<f32>");
        log::info!(target: KERNELS, "| 1.25ms     | Reduce\n  cubes (1, 2, 3)");
        log::info!(target: KERNELS, "something else");
        let expected = [("Matmul<f32>".to_owned(), 12_500), ("Reduce".to_owned(), 1_250_000)];
        assert_eq!(heard.end(), expected);
    }
}
