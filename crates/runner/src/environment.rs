//! What a reader of the numbers must know of the machine and the build.

use crate::devices::DiscoveredDevice;
use crate::platforms;
use serde_json::{Value, json};

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

/// Machine, build and devices of a run.
pub fn describe(devices: &[DiscoveredDevice]) -> Value {
    let devices: Vec<Value> = devices
        .iter()
        .map(|found| {
            let sensors = match platforms::of(found.device).sensors(found.device, &found.facts()) {
                Ok(source) => source.facts(),
                Err(why) => json!({ "none": why }),
            };
            json!({
                "device": found.device.to_string(),
                "name": found.name,
                "driver": found.driver,
                "identity": found.identity,
                "cache_bytes": found.cache,
                "stated_gbps": found.stated_gbps,
                "sensors": sensors,
            })
        })
        .collect();
    json!({
        "calorimeter": env!("CARGO_PKG_VERSION"),
        "burn": "0.21.0",
        "cubecl": "0.10.0",
        "profile": if cfg!(debug_assertions) { "debug" } else { "release" },
        "os": sysinfo::System::long_os_version().ok(),
        "kernel": sysinfo::System::kernel_version().ok(),
        "arch": std::env::consts::ARCH,
        "cpu": cpu_name(),
        "threads": std::thread::available_parallelism().map_or(1, usize::from),
        "rayon_num_threads": std::env::var("RAYON_NUM_THREADS").ok(),
        "devices": devices,
    })
}
