//! Which sensors a device has.

use crate::worker::DeviceFacts;
use calorimeter_timing::telemetry::{Source, processor};
use calorimeter_zoo::Device;
use std::time::Duration;
use sysinfo::{Process, ProcessRefreshKind, ProcessesToUpdate, System};

/// The sensors of a device, or why there are none. A processor that imitates a GPU has the processor's.
pub fn of(device: Device, facts: &DeviceFacts) -> Result<Box<dyn Source>, String> {
    match device {
        Device::Cpu => Ok(processor()),
        Device::Vulkan(_) | Device::Metal(_) if facts.software => Ok(processor()),
        #[cfg(feature = "cuda")]
        Device::Cuda(_) => {
            // The identity ends with the number that NVML knows it by.
            let uuid = facts.identity.rsplit(' ').next().unwrap_or_default();
            calorimeter_timing::telemetry::nvml(uuid)
        }
        _ => Err(format!("no sensors of {device} are known")),
    }
}

/// Who else uses a device at this moment, a line for each, or why it cannot be known. Our workers are nobody else.
pub fn others(device: Device, facts: &DeviceFacts) -> Result<Vec<String>, String> {
    if device == Device::Mock {
        return Ok(Vec::new());
    }
    let mut source = of(device, facts)?;
    let ours = children();
    let first = source.others(&ours)?;
    if matches!(device, Device::Cuda(_)) {
        return Ok(first);
    }
    // Shares of a processor are those since the look before.
    std::thread::sleep(Duration::from_millis(200));
    source.others(&ours)
}

/// The processes that this one has started.
fn children() -> Vec<u32> {
    let Ok(mut system) = System::new() else { return Vec::new() };
    system.refresh_processes_specifics(ProcessesToUpdate::All, false, ProcessRefreshKind::nothing().without_tasks());
    let ours = |process: &Process| process.parent().is_some_and(|parent| parent.as_u32() == std::process::id());
    system.processes().values().filter(|process| ours(process)).map(|process| process.pid().as_u32()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_sensors_says_why_nobody_can_be_seen_on_it() {
        let why = others(Device::Vulkan(0), &DeviceFacts::default()).unwrap_err();
        assert!(why.contains("no sensors of vulkan"), "{why}");
        assert_eq!(others(Device::Mock, &DeviceFacts::default()), Ok(vec![]));
    }

    #[test]
    fn a_process_that_was_started_here_is_a_child() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = children();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()) && !found.contains(&std::process::id()), "{found:?}");
    }
}
