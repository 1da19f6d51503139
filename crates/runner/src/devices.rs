//! Which devices are here, found without opening any.

use crate::config::Wanted;
use crate::worker::Told;
use calorimeter_case::{Regime, buffer_sets};
use calorimeter_timing::telemetry::last_level_cache;

use calorimeter_zoo::Device;
use std::sync::OnceLock;

/// A device that could run cases.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its handle.
    pub device: Device,
    /// What its maker calls it.
    pub name: String,
    /// Driver and versions.
    pub driver: String,
    /// Tells it from any other: kernels tuned on one are not used on another.
    pub identity: String,
    /// Whether it is a processor that imitates a GPU: never chosen unasked.
    pub software: bool,
    /// What its maker says that its memory moves, in 10⁹ bytes per second, where the driver tells.
    pub stated_gbps: Option<f64>,
    /// Size of its last cache in bytes, where it is known.
    pub cache: Option<u64>,
    intel: bool,
}

/// Larger than the last cache of nearly every GPU.
const UNKNOWN_CACHE: u64 = 128 << 20;

impl Found {
    /// The cache that buffer sets must exceed: its own, or a guess that is larger than most.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.unwrap_or(UNKNOWN_CACHE)
    }

    /// What its workers are told.
    pub fn told(&self) -> Told {
        let Self { identity, driver, software, .. } = self.clone();
        Told { identity, driver, software, cache_bytes: self.cache_bytes() }
    }

    /// How many buffer sets a case needs in a regime, if one run touches so many bytes.
    pub fn sets(&self, regime: Regime, bytes: u64) -> u32 {
        let times = if self.device == Device::Cpu || self.software { 2 } else { 3 };
        match self.device {
            Device::Mock => 1,
            _ if regime.rotates() => buffer_sets(self.cache_bytes(), bytes, times),
            _ => 1,
        }
    }
}

/// Why a device cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// It is not there.
    #[error("device {wanted} is not here; found: {found}. Choose one with --device, or see `calorimeter doctor`")]
    Missing {
        /// What was asked for.
        wanted: String,
        /// What is there.
        found: String,
    },
}

/// Every device of this machine, the best first. Looked up once.
pub fn discover() -> &'static [Found] {
    static FOUND: OnceLock<Vec<Found>> = OnceLock::new();
    FOUND.get_or_init(|| [cuda(), graphics(), vec![cpu()]].concat())
}

/// What a word of the configuration means here. A named device is taken at its word; see [`present`].
pub fn resolve(wanted: Wanted) -> Result<Device, DeviceError> {
    let pick = |suits: fn(&Found) -> bool| discover().iter().find(|found| suits(found)).map(|found| found.device);
    match wanted {
        Wanted::This(device) => Ok(device),
        Wanted::Auto => Ok(pick(|found| !found.software).unwrap_or(Device::Cpu)),
        Wanted::Xpu => pick(|found| found.intel).ok_or_else(|| missing(wanted)),
    }
}

/// The device as it was found, or an error that says what is there.
pub fn present(device: Device) -> Result<Found, DeviceError> {
    if device == Device::Mock {
        let (name, driver, identity) = ("mock".to_owned(), String::new(), "mock".to_owned());
        return Ok(Found {
            device,
            name,
            driver,
            identity,
            software: false,
            stated_gbps: None,
            cache: None,
            intel: false,
        });
    }
    if device == Device::Cpu {
        // It is always there: no reason to load a GPU's driver.
        return Ok(cpu());
    }
    discover().iter().find(|found| found.device == device).cloned().ok_or_else(|| missing(device))
}

/// How many CUDA devices there are; no other driver is loaded to find out.
pub fn cuda_gpus() -> u64 {
    static COUNT: OnceLock<u64> = OnceLock::new();
    *COUNT.get_or_init(|| cuda().len() as u64)
}

fn missing(wanted: impl ToString) -> DeviceError {
    let names: Vec<String> = discover().iter().map(|found| format!("{} ({})", found.device, found.name)).collect();
    DeviceError::Missing { wanted: wanted.to_string(), found: names.join(", ") }
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Vec<Found> {
    Vec::new()
}

#[cfg(feature = "cuda")]
fn cuda() -> Vec<Found> {
    let gpus = calorimeter_kernels::native::probe().unwrap_or_default();
    gpus.into_iter()
        .map(|gpu| Found {
            device: Device::Cuda(gpu.ordinal as u16),
            driver: format!("CUDA {}, compute capability {}", gpu.driver_version, gpu.compute_capability),
            identity: format!("{} {}", gpu.name, gpu.uuid),
            name: gpu.name,
            software: false,
            stated_gbps: gpu.memory_bytes_per_second.map(|rate| rate as f64 / 1e9),
            cache: Some(gpu.l2_bytes),
            intel: false,
        })
        .collect()
}

#[cfg(not(feature = "wgpu"))]
fn graphics() -> Vec<Found> {
    Vec::new()
}

#[cfg(feature = "wgpu")]
fn graphics() -> Vec<Found> {
    use calorimeter_zoo::backends::wgpu::{INTEL, adapters};
    let device = |index: usize| {
        if cfg!(target_os = "macos") { Device::Metal(index as u16) } else { Device::Vulkan(index as u16) }
    };
    adapters()
        .into_iter()
        .enumerate()
        .map(|(index, adapter)| Found {
            device: device(index),
            identity: format!("{} {}", adapter.name, adapter.driver),
            name: adapter.name,
            driver: adapter.driver,
            software: adapter.software,
            stated_gbps: None,
            // Graphics APIs do not tell.
            cache: if adapter.software { last_level_cache() } else { None },
            intel: adapter.vendor == INTEL && !adapter.software,
        })
        .collect()
}

fn cpu() -> Found {
    let name = crate::environment::cpu_name();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let driver = format!("{threads} threads");
    let cache = last_level_cache();
    Found {
        device: Device::Cpu,
        identity: name.clone(),
        name,
        driver,
        software: false,
        stated_gbps: None,
        cache,
        intel: false,
    }
}
