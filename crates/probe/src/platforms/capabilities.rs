//! Optional capabilities of a platform.

use super::{MatmulPrecision, memory, other_users};
use crate::devices::DeviceFacts;
use calorimeter_case::{Device, Implementation, Warning};
use calorimeter_kernels::probes::Probes;
use calorimeter_shapes::Shape;
use calorimeter_timing::memory::Timeline;
use calorimeter_timing::telemetry::{CounterValues, Source};
use calorimeter_timing::{Failure, Stopwatch, Work};
use calorimeter_zoo::{NativeDevices, Setup};
use std::time::Duration;

/// Stopwatch, with a warning if it is not the preferred one.
pub type StopwatchChoice = (Box<dyn Stopwatch>, Option<Warning>);

/// Capture of launches in a graph.
pub trait GraphCapture {
    /// True if launches of an implementation can be captured.
    fn can_capture(&self, implementation: Implementation) -> bool;

    /// Selects the stopwatch for graphs.
    fn stopwatch(&self, setup: Setup, machines: &mut NativeDevices) -> Result<StopwatchChoice, Failure>;
}

/// Sensors of devices.
pub trait Sensing {
    /// Sensors of a device, or the reason why there are none.
    fn sensors(&self, device: Device, facts: &DeviceFacts) -> Result<Box<dyn Source>, String>;

    /// Other users of a device, one line each, or the reason why they are unknown. Workers of this program are
    /// excluded.
    fn other_users(&self, device: Device, facts: &DeviceFacts) -> Result<Vec<String>, String> {
        other_users::users_between_samples(self.sensors(device, facts)?.as_mut())
    }

    /// Hardware counters over some launches, if available.
    fn counters(&self, _: &mut dyn Work, _launches: u32) -> Option<CounterValues> {
        None
    }
}

/// Probes of known cost, for peaks and `doctor --deep`.
pub trait Probing {
    /// Opens the probes of a device.
    fn probes(&self, device: Device, machines: &mut NativeDevices) -> Result<Box<dyn Probes>, Failure>;

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

    /// Bytes of a buffer and number of buffers to rotate through, so that a cache of this size has practically no hits.
    fn cache_exceeding_buffers(&self, cache_bytes: u64, max_buffer_bytes: u64) -> (u64, u32) {
        (max_buffer_bytes, (4 * cache_bytes / max_buffer_bytes + 1).min(16) as u32)
    }

    /// Second device clock for the same work, if there is one; `doctor --deep` compares the two.
    fn second_stopwatch(&self, _: Setup, _: &mut NativeDevices) -> Result<Option<Box<dyn Stopwatch>>, Failure> {
        Ok(None)
    }
}

/// Memory of devices. The defaults use the memory pools of burn.
pub trait DeviceMemory {
    /// Free bytes on a device, if it reports them.
    fn free_bytes(&self, device: Device, machines: &mut NativeDevices) -> Option<u64> {
        machines.free_memory(device)
    }

    /// Records the memory of a case during some passes.
    fn record(
        &self,
        setup: Setup,
        patience: Duration,
        run: &mut memory::TrackedPasses<'_>,
    ) -> Result<Timeline, Failure> {
        memory::record_pool(setup.device, memory::recording_limit(setup.device, patience, run)?, run)
    }
}

/// Memory that only burn's pools manage.
pub(super) struct PooledMemory;

impl DeviceMemory for PooledMemory {}
