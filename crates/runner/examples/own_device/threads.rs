//! Threads as devices.

use crate::BusyTime;
use crate::ThreadSensors;
use calorimeter_case::Name;
use calorimeter_probe::devices::{DeviceFacts, DiscoveredDevice};
use calorimeter_probe::platforms::{Platform, Sensing, StopwatchChoice};
use calorimeter_timing::telemetry::Source;
use calorimeter_timing::{Failure, Work};
use calorimeter_zoo::{Device, DeviceKind, NativeDevices, Setup};
use std::sync::atomic::AtomicU64;

// ANCHOR: platform
/// Device kind `thread`, with devices `thread:0` and so on.
pub(crate) const THREAD: DeviceKind = DeviceKind::Other(Name::new("thread"));

/// Threads as devices.
#[derive(Debug)]
pub(crate) struct Threads;

impl Platform for Threads {
    fn kinds(&self) -> &'static [DeviceKind] {
        &[THREAD]
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        // Marked as software, so that `auto` never selects it.
        let found = |index| DiscoveredDevice {
            software: true,
            driver: "std::thread".into(),
            ..DiscoveredDevice::with_name(THREAD.device(index), format!("thread {index}"))
        };
        [0, 1].map(found).into()
    }

    fn stopwatch(&self, setup: Setup, _: &mut NativeDevices, _: &mut dyn Work) -> Result<StopwatchChoice, Failure> {
        Ok((Box::new(BusyTime(busy(setup.device))), None))
    }

    fn clock(&self) -> String {
        "busy-time".into()
    }

    fn sensing(&self) -> Option<&dyn Sensing> {
        Some(self)
    }
}

impl Sensing for Threads {
    fn sensors(&self, _: Device, _: &DeviceFacts) -> Result<Box<dyn Source>, String> {
        Ok(Box::new(ThreadSensors))
    }
}
// ANCHOR_END: platform

/// Busy time of each thread in nanoseconds.
static BUSY: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Busy-time counter of a device.
pub(crate) fn busy(device: Device) -> &'static AtomicU64 {
    let Device::Other(_, index) = device else { return &BUSY[0] };
    &BUSY[usize::from(index)]
}
