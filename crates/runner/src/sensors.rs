//! Which sensors a device has.

use crate::worker::Told;
use calorimeter_timing::telemetry::{Source, processor};
use calorimeter_zoo::Device;
use std::time::Duration;

/// The sensors of a device, or why there are none. A processor that imitates a GPU has the processor's.
pub fn of(device: Device, told: &Told) -> Result<Box<dyn Source>, String> {
    match device {
        Device::Cpu => Ok(processor()),
        Device::Vulkan(_) | Device::Metal(_) if told.software => Ok(processor()),
        #[cfg(feature = "cuda")]
        Device::Cuda(_) => {
            // The identity ends with the number that NVML knows it by.
            let uuid = told.identity.rsplit(' ').next().unwrap_or_default();
            calorimeter_timing::telemetry::nvml(uuid)
        }
        _ => Err(format!("no sensors of {device} are known")),
    }
}

/// Who else uses a device at this moment, a line for each.
pub fn others(device: Device, told: &Told) -> Vec<String> {
    let Ok(mut source) = of(device, told) else { return Vec::new() };
    let ours = [std::process::id()];
    let first = source.others(&ours);
    if matches!(device, Device::Cuda(_)) {
        return first;
    }
    // Shares of a processor are those since the look before.
    std::thread::sleep(Duration::from_millis(200));
    source.others(&ours)
}
