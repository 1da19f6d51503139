//! Mock platform; the runner defines the behavior of its cases.

use super::Platform;
use super::device_defaults::DeviceDefaults;
use crate::devices::{DeviceFacts, DiscoveredDevice};
use calorimeter_case::{Device, Dtype, Implementation};
use calorimeter_sinks::{cache, log_line};
use calorimeter_timing::telemetry::{ClockLock, LockedClock};
use calorimeter_zoo::DeviceKind;
use std::fs::{File, create_dir_all};
use std::io::Write;
use std::path::PathBuf;

/// The mock device.
#[derive(Debug)]
pub(super) struct Mock;

impl Platform for Mock {
    fn kinds(&self) -> &'static [DeviceKind] {
        &[DeviceKind::Mock]
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        (0..device_count())
            .map(|index| {
                let device = Device::Mock(index);
                DiscoveredDevice { identity: device.to_string(), ..DiscoveredDevice::with_name(device, "mock") }
            })
            .collect()
    }

    fn clock(&self) -> String {
        "mock".into()
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn clock_lock(&self, _: Device, _: &DeviceFacts) -> Result<Box<dyn ClockLock>, String> {
        let folder = cache::cache_dir("mock").ok_or("no cache directory: set HOME or XDG_CACHE_HOME")?;
        Ok(Box::new(ScriptedClock(folder.join("clock.log"))))
    }

    // Sizes of a processor.
    fn defaults(&self, _: bool) -> DeviceDefaults {
        DeviceDefaults {
            noise_matmul_sizes: &[128, 256],
            noise_add_lengths: &[1 << 10, 1 << 16, 1 << 20],
            dtypes: &[Dtype::F32],
            quick_dtypes: &[Dtype::F32],
            fusion_implementations: &[Implementation::Eager, Implementation::Fused],
            ..DeviceDefaults::default()
        }
    }
}

/// Environment variable with the number of mock devices.
const COUNT_VARIABLE: &str = "CALORIMETER_MOCK_DEVICES";

/// Number of mock devices: one by default, zero if the variable is invalid.
fn device_count() -> u16 {
    let Some(text) = std::env::var_os(COUNT_VARIABLE) else { return 1 };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| {
        log_line!("warning: invalid {}: expected a number of devices; using no mock devices", COUNT_VARIABLE);
        0
    })
}

/// Clock lock of the mock device: appends each operation to a file. Locking fails if the file cannot be written.
struct ScriptedClock(PathBuf);

impl ScriptedClock {
    fn append(&self, line: &str) -> Result<(), String> {
        let write = || {
            self.0.parent().map_or(Ok(()), create_dir_all)?;
            writeln!(File::options().append(true).create(true).open(&self.0)?, "{line}")
        };
        write().map_err(|error| format!("cannot write {}: {error}", self.0.display()))
    }
}

impl ClockLock for ScriptedClock {
    fn lock(&mut self, clock: LockedClock) -> Result<(), String> {
        self.append(&format!("lock {clock}"))
    }

    fn unlock(&mut self) -> Result<(), String> {
        self.append("unlock")
    }

    fn unlock_command(&self) -> String {
        format!("rm {}", self.0.display())
    }
}
