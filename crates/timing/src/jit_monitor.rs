//! JIT monitor: counts the log messages of a GPU runtime about compilation and autotuning, so that affected windows can
//! be discarded.

use log::{LevelFilter, Log, Metadata, Record};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Logger that counts compiled and tuned kernels.
pub struct JitMonitor {
    compile_events: AtomicU64,
    tuning_events: AtomicU64,
    tuning_disabled: AtomicBool,
    /// Messages about single kernels, while a log is active.
    kernel_lines: Mutex<Option<Vec<String>>>,
}

static JIT_MONITOR: JitMonitor = JitMonitor {
    compile_events: AtomicU64::new(0),
    tuning_events: AtomicU64::new(0),
    tuning_disabled: AtomicBool::new(false),
    kernel_lines: Mutex::new(None),
};

/// Panic message if autotuning starts while it is disabled.
pub const TUNING_DISABLED: &str = "a kernel requires autotuning, which is disabled";

/// Log targets and prefixes of the runtime's compile messages.
const COMPILE_MESSAGES: [(&str, &str); 3] = [
    ("cubecl_cuda::compute::context", "Compiling kernel"),
    ("cubecl_wgpu::backend::vulkan", "Compiling "),
    ("cubecl_wgpu::backend::base", "[cubecl-wgpu] compiling WGSL module"),
];
/// Log target of messages about single kernels, in a process whose runtime times each kernel.
const KERNEL_TARGET: &str = "cubecl_common::config::logger";
const TUNE_MESSAGE: (&str, &str) = ("cubecl_runtime::tune::tuner", "Tuning ");

impl JitMonitor {
    /// Installs the monitor as the process's logger; later calls have no effect.
    pub fn install() -> &'static Self {
        if log::set_logger(&JIT_MONITOR).is_ok() {
            log::set_max_level(LevelFilter::Trace);
        }
        &JIT_MONITOR
    }

    /// Makes any later autotuning panic before it begins; the runtime has no other way to prevent it.
    pub fn disable_tuning(&self) {
        self.tuning_disabled.store(true, Ordering::Relaxed);
    }

    /// True if autotuning panics.
    pub fn is_tuning_disabled(&self) -> bool {
        self.tuning_disabled.load(Ordering::Relaxed)
    }

    /// Number of kernels compiled or tuned so far.
    pub fn jit_events(&self) -> u64 {
        self.compile_events.load(Ordering::Relaxed) + self.tuning_events()
    }

    /// Number of autotunings so far.
    pub fn tuning_events(&self) -> u64 {
        self.tuning_events.load(Ordering::Relaxed)
    }
}

impl Log for JitMonitor {
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
        if matches(TUNE_MESSAGE) {
            self.tuning_events.fetch_add(1, Ordering::Relaxed);
            assert!(!self.is_tuning_disabled(), "{TUNING_DISABLED}");
        } else if COMPILE_MESSAGES.into_iter().any(matches) {
            self.compile_events.fetch_add(1, Ordering::Relaxed);
        } else if target == KERNEL_TARGET
            && let Some(lines) = &mut *self.kernel_lines.lock().unwrap_or_else(PoisonError::into_inner)
        {
            lines.push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Log of the kernels that run while it exists, in a process whose runtime times each kernel.
pub struct KernelLog(());

/// Messages come from a thread of the runtime; after this time without one, none is pending.
const IDLE_TIME: Duration = Duration::from_millis(100);

impl KernelLog {
    /// Starts the log after all pending messages have arrived.
    pub fn start() -> Self {
        let begun = Self(());
        JIT_MONITOR.replace_kernel_lines(Some(Vec::new()));
        begun.wait_until_idle();
        JIT_MONITOR.replace_kernel_lines(Some(Vec::new()));
        begun
    }

    /// Returns the kernels since the start in execution order, each with its nanoseconds.
    pub fn finish(self) -> Vec<(String, u64)> {
        self.wait_until_idle();
        let lines = JIT_MONITOR.replace_kernel_lines(None).unwrap_or_default();
        lines.iter().filter_map(|line| parse_kernel_line(line)).collect()
    }

    fn wait_until_idle(&self) {
        let count =
            || JIT_MONITOR.kernel_lines.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, Vec::len);
        loop {
            let before = count();
            std::thread::sleep(IDLE_TIME);
            if count() == before {
                return;
            }
        }
    }
}

impl JitMonitor {
    fn replace_kernel_lines(&self, lines: Option<Vec<String>>) -> Option<Vec<String>> {
        std::mem::replace(&mut *self.kernel_lines.lock().unwrap_or_else(PoisonError::into_inner), lines)
    }
}

/// Parses a line such as `| 12.3µs     | Matmul`.
fn parse_kernel_line(line: &str) -> Option<(String, u64)> {
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
    fn only_runtime_messages_are_counted() {
        let silence = JitMonitor::install();
        let before = silence.jit_events();
        log::info!(target: "cubecl_runtime::tune::tuner", "Tuning matmul-{}", 4);
        log::trace!(target: "cubecl_cuda::compute::context", "Compiling kernel");
        log::debug!(target: "cubecl_wgpu::backend::vulkan", "Compiling {}", "add");
        log::trace!(target: "cubecl_wgpu::backend::base", "[cubecl-wgpu] compiling WGSL module `{}`\n{}", "add", "fn");
        log::trace!(target: "cubecl_wgpu::backend::base", "something else");
        log::info!(target: "somebody::else", "Compiling kernel");
        assert_eq!(silence.jit_events() - before, 4);
    }

    #[test]
    fn kernel_log_parses_runtime_messages() {
        JitMonitor::install();
        log::info!(target: KERNEL_TARGET, "| 1µs        | before");
        let kernel_log = KernelLog::start();
        log::info!(target: KERNEL_TARGET, "| 12.5µs     | Matmul<f32>");
        log::info!(target: KERNEL_TARGET, "| 1.25ms     | Reduce\n  cubes (1, 2, 3)");
        log::info!(target: KERNEL_TARGET, "something else");
        let expected = [("Matmul<f32>".to_owned(), 12_500), ("Reduce".to_owned(), 1_250_000)];
        assert_eq!(kernel_log.finish(), expected);
    }
}
