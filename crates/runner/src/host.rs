//! What this machine says of itself.

use chrono::{DateTime, Local};

/// The time here.
pub fn now() -> DateTime<Local> {
    Local::now()
}

/// The command line; what is no text in it, as far as it is.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// The processor's name, or its architecture where the system does not tell.
pub fn cpu_name() -> String {
    use sysinfo::{CpuRefreshKind, RefreshKind, System};
    let system = System::new_with_specifics(RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing())).ok();
    let brand = system.and_then(|system| Some(system.cpus().first()?.brand().trim().to_owned()));
    brand.filter(|brand| !brand.is_empty()).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Bytes of memory that can be allocated without swapping, where the system tells.
pub fn available_memory() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    Some(system.available_memory())
}
