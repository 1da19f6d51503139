//! Facts about the host.

use chrono::{DateTime, Local};

/// Returns the local time.
pub fn now() -> DateTime<Local> {
    Local::now()
}

/// Returns the command line; invalid UTF-8 is replaced.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Returns the processor's name, or its architecture if the system does not report a name.
pub fn cpu_name() -> String {
    use sysinfo::{CpuRefreshKind, RefreshKind, System};
    let system = System::new_with_specifics(RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing())).ok();
    let brand = system.and_then(|system| Some(system.cpus().first()?.brand().trim().to_owned()));
    brand.filter(|brand| !brand.is_empty()).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Returns the bytes of memory that can be allocated without swapping, if the system reports them.
pub fn available_memory() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    Some(system.available_memory())
}
