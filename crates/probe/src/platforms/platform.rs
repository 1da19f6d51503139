//! Trait of all platforms.

use super::advice::Advice;
use super::capabilities::{DeviceMemory, GraphCapture, PooledMemory, Probing, Sensing, StopwatchChoice};
use super::device_defaults::DeviceDefaults;
use crate::devices::{DeviceFacts, DiscoveredDevice};
use calorimeter_case::Device;
use calorimeter_timing::telemetry::{ClockLock, Source};
use calorimeter_timing::{Failure, WallClock, Work};
use calorimeter_zoo::{DeviceKind, NativeDevices, Setup};
use std::fmt::Debug;

/// Platform of some device kinds. The defaults suit most devices; optional capabilities are separate traits.
pub trait Platform: Debug + Send + Sync {
    /// Kinds of its devices.
    fn kinds(&self) -> &'static [DeviceKind];

    /// Discovers its devices on this machine, in order of preference, without opening them.
    fn find(&self) -> Vec<DiscoveredDevice>;

    /// Advice for `doctor`: libraries with a remedy for each missing one, and a remedy if no device was found.
    fn advice(&self, _found: bool) -> Option<Advice> {
        None
    }

    /// Selects the stopwatch for times on the device.
    fn stopwatch(&self, _: Setup, _: &mut NativeDevices, _: &mut dyn Work) -> Result<StopwatchChoice, Failure> {
        Ok((Box::new(WallClock::slope()), None))
    }

    /// Name of the stopwatch for `doctor`; no device is used.
    fn clock(&self) -> String {
        "slope".into()
    }

    /// True if a launch returns after the work is done.
    fn is_synchronous(&self) -> bool {
        false
    }

    /// True if the devices compute nothing: rules of the mock device define outputs and times.
    fn is_simulated(&self) -> bool {
        false
    }

    /// True if no clock reports kernels, so that a separate worker traces them.
    fn needs_kernel_tracer(&self) -> bool {
        false
    }

    /// True if other processes use the same memory.
    fn shares_memory(&self, software: bool) -> bool {
        software
    }

    /// Default sizes for probes and calibration; `software` is true for an emulated GPU.
    fn defaults(&self, _software: bool) -> DeviceDefaults {
        DeviceDefaults::default()
    }

    /// Clock lock of a device, not yet acquired, or the reason why there is none.
    fn clock_lock(&self, device: Device, _: &DeviceFacts) -> Result<Box<dyn ClockLock>, String> {
        Err(format!("cannot lock the clock of {device}: lock it before the run, or omit the option"))
    }

    /// Capture of launches in graphs, if supported.
    fn graphs(&self) -> Option<&dyn GraphCapture> {
        None
    }

    /// Sensors, if there are any.
    fn sensing(&self) -> Option<&dyn Sensing> {
        None
    }

    /// Probes, if there are any.
    fn probing(&self) -> Option<&dyn Probing> {
        None
    }

    /// Memory of the devices; `None` if they allocate nothing. By default, only simulated devices have none.
    fn memory(&self) -> Option<&dyn DeviceMemory> {
        if self.is_simulated() { None } else { Some(&PooledMemory) }
    }
}

impl dyn Platform {
    /// Probes, or the reason why there are none.
    pub fn require_probing(&self, device: Device) -> Result<&dyn Probing, Failure> {
        self.probing().ok_or_else(|| format!("no probes for {device} in this build").into())
    }

    /// Setup of the probes of a device, or the reason why there are none.
    pub fn probe_setup(&self, device: Device) -> Result<Setup, Failure> {
        Ok(Setup { implementation: self.require_probing(device)?.probe_implementation(), device, sets: 1 })
    }

    /// Sensors of a device, or the reason why there are none.
    pub fn sensors(&self, device: Device, facts: &DeviceFacts) -> Result<Box<dyn Source>, String> {
        self.sensing().ok_or_else(|| format!("no sensors for {device}"))?.sensors(device, facts)
    }

    /// Other users of a device, one line each, or the reason why they are unknown. A simulated device has none.
    pub fn other_users(&self, device: Device, facts: &DeviceFacts) -> Result<Vec<String>, String> {
        match self.sensing() {
            Some(sensing) => sensing.other_users(device, facts),
            None if self.is_simulated() => Ok(Vec::new()),
            None => Err(format!("no sensors for {device}")),
        }
    }
}
