//! Description of machine, build and devices for the journal.

use calorimeter_probe::devices::DiscoveredDevice;
use calorimeter_probe::host::cpu_name;
use calorimeter_probe::{clock_notes, platforms};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Returns machine, build and devices of a run as JSON.
pub fn describe(devices: &[DiscoveredDevice]) -> Value {
    let devices: Vec<Value> = devices
        .iter()
        .map(|found| {
            let facts = found.facts();
            let (sensors, policy) = match platforms::for_device(found.device).sensors(found.device, &facts) {
                Ok(source) => (source.facts(), Some(source.policy())),
                Err(why) => (json!({ "none": why }), None),
            };
            json!({
                "device": found.device.to_string(),
                "name": found.name,
                "driver": found.driver,
                "identity": found.identity,
                "cache_bytes": found.cache,
                "stated_gbps": found.stated_gbps,
                "sensors": sensors,
                "clock_policy": Some(clock_notes::clock_policy(policy, facts.locked_clock)).filter(|known| !known.is_empty()),
            })
        })
        .collect();
    let features: Vec<&str> = option_env!("CALORIMETER_FEATURES").unwrap_or_default().split_whitespace().collect();
    json!({
        "calorimeter": env!("CARGO_PKG_VERSION"),
        "burn": option_env!("CALORIMETER_BURN"),
        "cubecl": option_env!("CALORIMETER_CUBECL"),
        "revision": option_env!("CALORIMETER_REVISION"),
        "rustc": option_env!("CALORIMETER_RUSTC"),
        "features": features,
        "profile": option_env!("CALORIMETER_PROFILE"),
        "os": sysinfo::System::long_os_version().ok(),
        "kernel": sysinfo::System::kernel_version().ok(),
        "arch": std::env::consts::ARCH,
        "cpu": cpu_name(),
        "threads": std::thread::available_parallelism().map_or(1, usize::from),
        "rayon_num_threads": std::env::var("RAYON_NUM_THREADS").ok(),
        "variables": recorded_variables(std::env::vars_os()),
        "devices": devices,
    })
}

/// Prefixes of environment variables that change the behavior or speed of the libraries used.
const RECORDED_PREFIXES: &[&str] = &[
    "ACO_",
    "AMD_",
    "ANV_",
    "AUTO_GRAPHICS_BACKEND",
    "BENCH_",
    "BURN_",
    "CUBECL_",
    "CUBLAS",
    "CUDA_",
    "CUPTI_",
    // Each implicit Vulkan layer has its own DISABLE_ and ENABLE_ variable; other variables with these prefixes are
    // irrelevant.
    "DISABLE_GAMESCOPE_",
    "DISABLE_LAYER_",
    "DISABLE_MANGOHUD",
    "DISABLE_VK",
    "DISABLE_VULKAN_",
    "DRI_",
    "DYLD_",
    "ENABLE_DEVICE_CHOOSER_LAYER",
    "ENABLE_GAMESCOPE_",
    "ENABLE_VK",
    "ENABLE_VULKAN_",
    "GALLIUM",
    "GALLIVM_",
    "GLIBC_TUNABLES",
    "GOMP_",
    "GOTO_",
    "INTEL_",
    "KMP_",
    "LD_",
    "LIBGL_",
    "LP_",
    "MALLOC_",
    "MANGOHUD",
    "MESA_",
    "METAL_",
    "MKL_",
    "MTL_",
    "NCCL_",
    "NIR_",
    "NVIDIA_",
    "NVRTC_",
    "NVTX_",
    "OMP_",
    "OPENBLAS_",
    "POLARS_",
    "RADV_",
    "RAYON_",
    "RUST_",
    "VK_",
    "WGPU_",
    "__EGL_",
    "__GL_",
    "__NV_",
];

/// Suffixes of variables that are never recorded, because journals are shared.
const SECRET_SUFFIXES: &[&str] = &["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];

/// Relevant environment variables that are set.
fn recorded_variables(all: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let all = all.map(|(name, value)| (text(name), text(value)));
    let heeded = |name: &str| RECORDED_PREFIXES.iter().any(|start| name.starts_with(start));
    let secret = |name: &str| SECRET_SUFFIXES.iter().any(|end| name.ends_with(end));
    all.filter(|(name, _)| heeded(name) && !secret(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relevant_variables_are_recorded() {
        let heeded = [
            "CUDA_VISIBLE_DEVICES",
            "DISABLE_VK_LAYER_VALVE_steam_overlay_1",
            "ENABLE_VULKAN_RENDERDOC_CAPTURE",
            "GALLIVM_PERF",
            "MANGOHUD_CONFIG",
            "MKL_NUM_THREADS",
            "NCCL_ALGO",
            "RUST_LOG",
            "__NV_PRIME_RENDER_OFFLOAD",
        ];
        let others = ["PATH", "DISABLE_TELEMETRY", "ENABLE_IDE_INTEGRATION", "NVIDIA_API_KEY", "AMD_TOKEN"];
        let set = heeded.iter().chain(&others).map(|name| (OsString::from(name), OsString::from("1")));
        assert_eq!(recorded_variables(set).into_keys().collect::<Vec<_>>(), heeded);
    }

    #[test]
    fn build_facts_match_the_lock_file() {
        let environment = describe(&[]);
        let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).unwrap();
        for library in ["burn", "cubecl"] {
            let package = format!("name = \"{library}\"\nversion = \"{}\"\n", environment[library].as_str().unwrap());
            assert!(lock.contains(&package), "{package}");
        }
        assert!(environment["rustc"].as_str().unwrap().starts_with("rustc 1."), "{environment}");
        let features = environment["features"].as_array().unwrap();
        assert_eq!(features.contains(&"cuda".into()), cfg!(feature = "cuda"), "{environment}");
        // A checkout has a revision; an unpacked archive has none.
        let revision = environment["revision"].as_str().unwrap_or("0000000");
        assert!(revision.trim_end_matches('+').chars().all(|c| c.is_ascii_hexdigit()), "{environment}");
    }
}
