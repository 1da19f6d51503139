//! Device under test: a real one, or a scripted one.

use crate::captured_stderr::with_stderr_prefix;
use crate::devices::DiscoveredDevice;
use crate::peaks::PeakProbe;
use crate::platforms;
use crate::platforms::ProbeWork;
use crate::regimes::stopwatch;
use crate::sensors::{SensorWatch, Sensors};
use calorimeter_case::{Regime, buffer_sets};
use calorimeter_kernels::probes::Probes;
use calorimeter_timing::{DeviceState, Failure, Observer, Phase, Stopwatch, Work};
use calorimeter_zoo::NativeDevices;
use serde_json::Value;

/// Work with its stopwatch and the bytes per launch.
pub struct TimedWork {
    pub work: Box<dyn Work>,
    pub stopwatch: Box<dyn Stopwatch>,
    pub bytes: u64,
}

/// Computations of known cost on the device under test.
pub trait Rig {
    /// Target duration of a chain: far above clock steps and launch overhead, far below watchdog limits.
    fn spin_nanos(&self) -> f64 {
        300_000.0
    }
    /// True if launch overhead is significant relative to a chain.
    fn has_slow_launches(&self) -> bool {
        false
    }
    /// Chain of `steps` dependent operations.
    fn spin(&mut self, steps: u64) -> Result<TimedWork, Failure>;
    /// Copy of `bytes` that rotates through `sets` buffer sets.
    fn copy(&mut self, bytes: u64, sets: u32) -> Result<TimedWork, Failure>;
    /// Copy far larger than the cache.
    fn large_copy(&mut self) -> Result<TimedWork, Failure>;
    /// Bytes of a copy that fits into the cache, and the number of buffer sets that exceed it.
    fn cached_copy(&self) -> (u64, u32);
    /// Work with the highest power draw among the computations of known cost.
    fn heavy_work(&mut self) -> Result<TimedWork, Failure> {
        self.large_copy()
    }
    /// The chain on every other stopwatch of the device, including replay of a captured graph.
    fn other_clocks(&mut self, steps: u64) -> Result<Vec<TimedWork>, Failure>;
    /// Peak memory bandwidth in GB/s, stated by the vendor or measured by a probe.
    fn bandwidth(&mut self) -> Result<Option<f64>, Failure>;
    /// Observer that reads the device's sensors, as for cases.
    fn observer(&mut self) -> Box<dyn Observer + '_>;
    /// Settings reported by the sensors.
    fn facts(&mut self) -> Value;
    /// Other users of the device, or the reason why they are unknown.
    fn other_users(&mut self) -> Result<Vec<String>, String>;
}

/// Real device.
pub struct RealRig {
    found: DiscoveredDevice,
    machines: NativeDevices,
    probes: Box<dyn Probes>,
    sensors: Sensors,
}

impl RealRig {
    /// Opens the device.
    pub fn open(found: DiscoveredDevice) -> Result<Self, Failure> {
        let mut machines = NativeDevices::default();
        let open =
            || platforms::for_device(found.device).require_probing(found.device)?.probes(found.device, &mut machines);
        let probes = with_stderr_prefix(&found.device.kind().name().to_string(), open)?;
        let sensors = Sensors::start(found.device, &found.facts());
        Ok(Self { found, machines, probes, sensors })
    }

    /// Probe with the stopwatch of a regime.
    fn timed_probe(
        &mut self,
        probe: Box<dyn calorimeter_kernels::probes::Probe>,
        regime: Regime,
    ) -> Result<TimedWork, Failure> {
        let setup = platforms::for_device(self.found.device).probe_setup(self.found.device)?;
        let choose =
            |machines: &mut NativeDevices, work: &mut dyn Work| Ok(stopwatch(regime, setup, machines, work)?.0);
        self.timed_with(probe, choose)
    }

    fn timed_with(
        &mut self,
        mut probe: Box<dyn calorimeter_kernels::probes::Probe>,
        choose: impl FnOnce(&mut NativeDevices, &mut dyn Work) -> Result<Box<dyn Stopwatch>, Failure>,
    ) -> Result<TimedWork, Failure> {
        probe.check()?;
        let bytes = probe.bytes();
        let mut work: Box<dyn Work> = Box::new(ProbeWork(probe));
        let stopwatch = choose(&mut self.machines, work.as_mut())?;
        Ok(TimedWork { work, stopwatch, bytes })
    }

    fn max_buffer_bytes(&self) -> u64 {
        platforms::for_device(self.found.device).defaults(self.found.software).max_buffer_bytes
    }
}

impl Rig for RealRig {
    fn spin_nanos(&self) -> f64 {
        if self.found.software { 5_000_000.0 } else { 300_000.0 }
    }

    // Software devices start threads for each launch, and abort long loops.
    fn has_slow_launches(&self) -> bool {
        self.found.software
    }

    fn spin(&mut self, steps: u64) -> Result<TimedWork, Failure> {
        let probe = self.probes.spin(steps)?;
        self.timed_probe(probe, Regime::DeviceHot)
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<TimedWork, Failure> {
        let probe = self.probes.copy(bytes, sets)?;
        self.timed_probe(probe, Regime::DeviceHot)
    }

    fn large_copy(&mut self) -> Result<TimedWork, Failure> {
        let bytes = (4 * self.found.cache_bytes()).clamp(64 << 20, self.max_buffer_bytes());
        let sets = buffer_sets(self.found.cache_bytes(), 2 * bytes, 3);
        self.copy(bytes, sets)
    }

    fn cached_copy(&self) -> (u64, u32) {
        // One sixteenth each for source and destination stays in the cache next to other data.
        let bytes = (self.found.cache_bytes() / 16).min(self.max_buffer_bytes());
        (bytes, buffer_sets(self.found.cache_bytes(), 2 * bytes, 3))
    }

    fn other_clocks(&mut self, steps: u64) -> Result<Vec<TimedWork>, Failure> {
        let platform = platforms::for_device(self.found.device);
        let setup = platform.probe_setup(self.found.device)?;
        let mut clocks = Vec::new();
        if let Some(other) = platform.require_probing(setup.device)?.second_stopwatch(setup, &mut self.machines)? {
            let probe = self.probes.spin(steps)?;
            clocks.push(self.timed_with(probe, |_, _| Ok(other))?);
        }
        if platform.graphs().is_some_and(|graphs| graphs.can_capture(setup.implementation)) {
            let probe = self.probes.spin(steps)?;
            clocks.push(self.timed_probe(probe, Regime::Graph)?);
        }
        Ok(clocks)
    }

    fn bandwidth(&mut self) -> Result<Option<f64>, Failure> {
        if let Some(stated) = self.found.stated_gbps {
            return Ok(Some(stated));
        }
        let (facts, device) = (self.found.facts(), self.found.device);
        let policy = self.sensors.policy();
        PeakProbe { facts: &facts, policy, device, may_tune: true, machines: &mut self.machines }
            .measure_memory()
            .map(|looks| looks.peak())
            .map_err(Failure::from)
    }

    fn observer(&mut self) -> Box<dyn Observer + '_> {
        Box::new(SensorObserver(self.sensors.watch()))
    }

    fn facts(&mut self) -> Value {
        let (device, facts) = (self.found.device, self.found.facts());
        platforms::for_device(device).sensors(device, &facts).map_or(Value::Null, |source| source.facts())
    }

    fn other_users(&mut self) -> Result<Vec<String>, String> {
        platforms::for_device(self.found.device).other_users(self.found.device, &self.found.facts())
    }
}

/// Reads the sensors between windows.
struct SensorObserver<'a>(SensorWatch<'a>);

impl Observer for SensorObserver<'_> {
    fn after_round(&mut self, _: u32) {
        self.0.end_round();
    }

    fn must_repeat_round(&mut self) -> bool {
        self.0.was_throttled()
    }

    fn state(&mut self, phase: Phase) -> Option<DeviceState> {
        self.0.state(phase)
    }
}
