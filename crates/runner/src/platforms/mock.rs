//! The scripted device: what its cases do is in `crate::mock`.

use super::platform::Platform;
use super::trials::Trials;
use crate::cache;
use crate::devices::DiscoveredDevice;
use crate::tell::tell;
use crate::worker::DeviceFacts;
use calorimeter_case::{Device, Dtype, Implementation};
use calorimeter_timing::telemetry::{ClockLock, LockedClock};
use calorimeter_zoo::DeviceKind;
use std::fs::{File, create_dir_all};
use std::io::Write;
use std::path::PathBuf;

/// The scripted device.
#[derive(Debug)]
pub struct Mock;

impl Platform for Mock {
    fn kinds(&self) -> &'static [DeviceKind] {
        &[DeviceKind::Mock]
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        (0..how_many())
            .map(|index| {
                let device = Device::Mock(index);
                DiscoveredDevice { identity: device.to_string(), ..DiscoveredDevice::named(device, "mock") }
            })
            .collect()
    }

    fn clock(&self) -> String {
        "mock".into()
    }

    fn has_graphs(&self, _: Implementation) -> bool {
        true
    }

    fn is_scripted(&self) -> bool {
        true
    }

    fn clock_lock(&self, _: Device, _: &DeviceFacts) -> Result<Box<dyn ClockLock>, String> {
        let folder = cache::folder("mock").ok_or("there is no place for it: set HOME or XDG_CACHE_HOME")?;
        Ok(Box::new(ScriptedClock(folder.join("clock.log"))))
    }

    fn others(&self, _: Device, _: &DeviceFacts) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    // It stands for a processor.
    fn trials(&self, _: bool) -> Trials {
        Trials {
            noise_products: &[128, 256],
            noise_sums: &[1 << 10, 1 << 16, 1 << 20],
            dtypes: &[Dtype::F32],
            quick_dtypes: &[Dtype::F32],
            fusion: &[Implementation::Eager, Implementation::Fused],
            ..Trials::default()
        }
    }
}

/// The variable that says how many there are.
const HOW_MANY: &str = "CALORIMETER_MOCK_DEVICES";

/// One, unless the environment says otherwise; none where what it says is no number.
fn how_many() -> u16 {
    let Some(said) = std::env::var_os(HOW_MANY) else { return 1 };
    let number = said.to_str().and_then(|said| said.parse().ok());
    number.unwrap_or_else(|| {
        tell!("warning: {HOW_MANY} is no number of devices, so there are no mock devices");
        0
    })
}

/// The lock on a clock that is not there: a file that holds a line for each thing done to it. Where it cannot be written, the
/// device may not be locked.
struct ScriptedClock(PathBuf);

impl ScriptedClock {
    fn note(&self, line: &str) -> Result<(), String> {
        let write = || {
            self.0.parent().map_or(Ok(()), create_dir_all)?;
            writeln!(File::options().append(true).create(true).open(&self.0)?, "{line}")
        };
        write().map_err(|error| format!("whoever runs this may not write {}: {error}", self.0.display()))
    }
}

impl ClockLock for ScriptedClock {
    fn lock(&mut self, clock: LockedClock) -> Result<(), String> {
        self.note(&format!("lock {clock}"))
    }

    fn unlock(&mut self) -> Result<(), String> {
        self.note("unlock")
    }

    fn by_hand(&self) -> String {
        format!("rm {}", self.0.display())
    }
}
