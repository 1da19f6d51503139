//! Trait of all platforms.

use super::device_defaults::DeviceDefaults;
use super::{memory, other_users};
use crate::devices::DiscoveredDevice;
use crate::peaks::MatmulPrecision;
use crate::worker::DeviceFacts;
use calorimeter_case::{Device, Implementation, Warning};
use calorimeter_kernels::probes::Probes;
use calorimeter_shapes::Shape;
use calorimeter_timing::memory::Timeline;
use calorimeter_timing::telemetry::{ClockLock, CounterValues, Source};
use calorimeter_timing::{Failure, Stopwatch, WallClock, Work};
use calorimeter_zoo::{DeviceKind, NativeDevices, Setup};
use std::fmt::Debug;
use std::time::Duration;

/// Stopwatch, with a warning if it is not the preferred one.
pub type StopwatchChoice = (Box<dyn Stopwatch>, Option<Warning>);

/// Platform of some device kinds: discovery, timing, sensors and probes. The defaults suit most devices.
pub trait Platform: Debug + Send + Sync {
    /// Kinds of its devices.
    fn kinds(&self) -> &'static [DeviceKind];

    /// Discovers its devices on this machine, in order of preference, without opening them.
    fn find(&self) -> Vec<DiscoveredDevice>;

    /// Additional text for `doctor`: libraries found, and installation hints if no device was found.
    fn advice(&self, _found: bool) -> String {
        String::new()
    }

    /// Selects the stopwatch for times on the device.
    fn stopwatch(&self, _: Setup, _: &mut NativeDevices, _: &mut dyn Work) -> Result<StopwatchChoice, Failure> {
        Ok((Box::new(WallClock::slope()), None))
    }

    /// Name of the stopwatch for `doctor`; no device is used.
    fn clock(&self) -> String {
        "slope".into()
    }

    /// True if launches of an implementation can be captured in a graph.
    fn has_graphs(&self, _: Implementation) -> bool {
        false
    }

    /// Selects the stopwatch for graphs.
    fn graph_stopwatch(&self, _: Setup, _: &mut NativeDevices) -> Result<StopwatchChoice, Failure> {
        Err("only cuda has graphs".into())
    }

    /// Second device clock for the same work, if there is one; `doctor --deep` compares the two.
    fn second_stopwatch(&self, _: Setup, _: &mut NativeDevices) -> Result<Option<Box<dyn Stopwatch>>, Failure> {
        Ok(None)
    }

    /// True if a launch returns after the work is done.
    fn is_synchronous(&self) -> bool {
        false
    }

    /// True if nothing is computed and times follow a script.
    fn is_scripted(&self) -> bool {
        false
    }

    /// True if no clock reports kernels, so that a separate worker traces them.
    fn needs_kernel_tracer(&self) -> bool {
        false
    }

    /// Sensors of a device, or the reason why there are none.
    fn sensors(&self, device: Device, _: &DeviceFacts) -> Result<Box<dyn Source>, String> {
        Err(format!("no sensors for {device}"))
    }

    /// Other users of a device, one line each, or the reason why they are unknown. Workers of this program are
    /// excluded.
    fn other_users(&self, device: Device, facts: &DeviceFacts) -> Result<Vec<String>, String> {
        other_users::users_between_samples(self.sensors(device, facts)?.as_mut())
    }

    /// Clock lock of a device, not yet acquired, or the reason why there is none.
    fn clock_lock(&self, device: Device, _: &DeviceFacts) -> Result<Box<dyn ClockLock>, String> {
        Err(format!("cannot lock the clock of {device}: lock it before the run, or omit the option"))
    }

    /// Hardware counters over some launches, if available.
    fn counters(&self, _: &mut dyn Work, _launches: u32) -> Option<CounterValues> {
        None
    }

    /// Probes of known cost, for peaks and `doctor --deep`.
    fn probes(&self, device: Device, _: &mut NativeDevices) -> Result<Box<dyn Probes>, Failure> {
        Err(format!("no probes for {device} in this build").into())
    }

    /// Implementation that the probes belong to; it determines their clock.
    fn probe_implementation(&self) -> Implementation {
        Implementation::Eager
    }

    /// Implementations whose matmuls are measured; the fastest determines the peak.
    fn matmul_implementations(&self) -> Vec<Implementation> {
        vec![self.probe_implementation()]
    }

    /// Matmul of a kind that no model uses, such as TF32.
    fn extra_matmul(
        &self,
        _kind: MatmulPrecision,
        _form: Shape,
        _: Device,
        _: &mut NativeDevices,
    ) -> Option<Result<Box<dyn Work>, Failure>> {
        None
    }

    /// True if matmuls are autotuned at the first launch, which takes seconds.
    fn autotunes_matmul(&self) -> bool {
        false
    }

    /// Default sizes for probes and calibration; `software` is true for an emulated GPU.
    fn defaults(&self, _software: bool) -> DeviceDefaults {
        DeviceDefaults::default()
    }

    /// Bytes of a buffer and number of buffers to rotate through, so that a cache of this size has practically no hits.
    fn cache_exceeding_buffers(&self, cache_bytes: u64) -> (u64, u32) {
        let largest = self.defaults(false).max_buffer_bytes;
        (largest, (4 * cache_bytes / largest + 1).min(16) as u32)
    }

    /// True if other processes use the same memory.
    fn shares_memory(&self, software: bool) -> bool {
        software
    }

    /// Free bytes on a device, if it reports them.
    fn free_memory(&self, device: Device, machines: &mut NativeDevices) -> Option<u64> {
        machines.free_memory(device)
    }

    /// Records the memory of a case during some passes.
    fn record_memory(
        &self,
        setup: Setup,
        patience: Duration,
        run: &mut memory::TrackedPasses<'_>,
    ) -> Result<Timeline, Failure> {
        memory::record_pool(setup.device, memory::recording_limit(setup.device, patience, run)?, run)
    }
}
