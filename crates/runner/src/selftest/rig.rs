//! Device under test: a real one, or a scripted one.

use crate::chatter::marked;
use crate::devices::DiscoveredDevice;
use crate::peaks::Probe;
use crate::platforms;
use crate::platforms::Probed;
use crate::regimes::stopwatch;
use crate::worker::arm::sensors::{Sensors, Watch};
use calorimeter_case::{Regime, buffer_sets};
use calorimeter_kernels::probes::Probes;
use calorimeter_timing::{Failure, Observer, Phase, State, Stopwatch, Work};
use calorimeter_zoo::{Machines, Setup};
use serde_json::Value;

/// Work with its stopwatch and the bytes per launch.
pub struct Pair {
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
    fn launching_takes_long(&self) -> bool {
        false
    }
    /// Chain of `steps` dependent operations.
    fn spin(&mut self, steps: u64) -> Result<Pair, Failure>;
    /// Copy of `bytes` that rotates through `sets` buffer sets.
    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Pair, Failure>;
    /// Copy far larger than the cache.
    fn large_copy(&mut self) -> Result<Pair, Failure>;
    /// Bytes of a copy that fits into the cache, and the number of buffer sets that exceed it.
    fn cached_copy(&self) -> (u64, u32);
    /// Work with the highest power draw among the computations of known cost.
    fn heavy(&mut self) -> Result<Pair, Failure> {
        self.large_copy()
    }
    /// The chain on every other stopwatch of the device, including replay of a captured graph.
    fn other_clocks(&mut self, steps: u64) -> Result<Vec<Pair>, Failure>;
    /// Peak memory bandwidth in GB/s, stated by the vendor or measured by a probe.
    fn bandwidth(&mut self) -> Result<Option<f64>, Failure>;
    /// Observer that reads the device's sensors, as for cases.
    fn observer(&mut self) -> Box<dyn Observer + '_>;
    /// Settings reported by the sensors.
    fn facts(&mut self) -> Value;
    /// Other users of the device, or the reason why they are unknown.
    fn others(&mut self) -> Result<Vec<String>, String>;
}

/// Real device.
pub struct RealRig {
    found: DiscoveredDevice,
    machines: Machines,
    probes: Box<dyn Probes>,
    sensors: Sensors,
}

impl RealRig {
    /// Opens the device.
    pub fn open(found: DiscoveredDevice) -> Result<Self, Failure> {
        let mut machines = Machines::default();
        let open = || platforms::of(found.device).probes(found.device, &mut machines);
        let probes = marked(&found.device.kind().name().to_string(), open)?;
        let sensors = Sensors::of(found.device, &found.facts());
        Ok(Self { found, machines, probes, sensors })
    }

    fn setup(&self) -> Setup {
        let device = self.found.device;
        Setup { implementation: platforms::of(device).probed_by(), device, sets: 1 }
    }

    /// Probe with the stopwatch of a regime.
    fn pair(&mut self, probe: Box<dyn calorimeter_kernels::probes::Probe>, regime: Regime) -> Result<Pair, Failure> {
        let setup = self.setup();
        let choose = |machines: &mut Machines, work: &mut dyn Work| Ok(stopwatch(regime, setup, machines, work)?.0);
        self.timed(probe, choose)
    }

    fn timed(
        &mut self,
        mut probe: Box<dyn calorimeter_kernels::probes::Probe>,
        choose: impl FnOnce(&mut Machines, &mut dyn Work) -> Result<Box<dyn Stopwatch>, Failure>,
    ) -> Result<Pair, Failure> {
        probe.check()?;
        let bytes = probe.bytes();
        let mut work: Box<dyn Work> = Box::new(Probed(probe));
        let stopwatch = choose(&mut self.machines, work.as_mut())?;
        Ok(Pair { work, stopwatch, bytes })
    }

    fn largest(&self) -> u64 {
        platforms::of(self.found.device).trials(self.found.software).largest_buffer
    }
}

impl Rig for RealRig {
    fn spin_nanos(&self) -> f64 {
        if self.found.software { 5_000_000.0 } else { 300_000.0 }
    }

    // Software devices start threads for each launch, and abort long loops.
    fn launching_takes_long(&self) -> bool {
        self.found.software
    }

    fn spin(&mut self, steps: u64) -> Result<Pair, Failure> {
        let probe = self.probes.spin(steps)?;
        self.pair(probe, Regime::DeviceHot)
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Pair, Failure> {
        let probe = self.probes.copy(bytes, sets)?;
        self.pair(probe, Regime::DeviceHot)
    }

    fn large_copy(&mut self) -> Result<Pair, Failure> {
        let bytes = (4 * self.found.cache_bytes()).clamp(64 << 20, self.largest());
        let sets = buffer_sets(self.found.cache_bytes(), 2 * bytes, 3);
        self.copy(bytes, sets)
    }

    fn cached_copy(&self) -> (u64, u32) {
        // One sixteenth each for source and destination stays in the cache next to other data.
        let bytes = (self.found.cache_bytes() / 16).min(self.largest());
        (bytes, buffer_sets(self.found.cache_bytes(), 2 * bytes, 3))
    }

    fn other_clocks(&mut self, steps: u64) -> Result<Vec<Pair>, Failure> {
        let (platform, setup) = (platforms::of(self.found.device), self.setup());
        let mut clocks = Vec::new();
        if let Some(other) = platform.other_stopwatch(setup, &mut self.machines)? {
            let probe = self.probes.spin(steps)?;
            clocks.push(self.timed(probe, |_, _| Ok(other))?);
        }
        if platform.has_graphs(setup.implementation) {
            let probe = self.probes.spin(steps)?;
            clocks.push(self.pair(probe, Regime::Graph)?);
        }
        Ok(clocks)
    }

    fn bandwidth(&mut self) -> Result<Option<f64>, Failure> {
        if let Some(stated) = self.found.stated_gbps {
            return Ok(Some(stated));
        }
        let (facts, device) = (self.found.facts(), self.found.device);
        let policy = self.sensors.policy();
        Probe { told: &facts, policy, device, may_tune: true, machines: &mut self.machines }
            .memory()
            .map(|looks| looks.peak())
            .map_err(Failure::from)
    }

    fn observer(&mut self) -> Box<dyn Observer + '_> {
        Box::new(SensorObserver(self.sensors.begin()))
    }

    fn facts(&mut self) -> Value {
        let (device, facts) = (self.found.device, self.found.facts());
        platforms::of(device).sensors(device, &facts).map_or(Value::Null, |source| source.facts())
    }

    fn others(&mut self) -> Result<Vec<String>, String> {
        platforms::of(self.found.device).others(self.found.device, &self.found.facts())
    }
}

/// Reads the sensors between windows.
struct SensorObserver<'a>(Watch<'a>);

impl Observer for SensorObserver<'_> {
    fn round(&mut self, _: u32) {
        self.0.round();
    }

    fn spoilt(&mut self) -> bool {
        self.0.spoilt()
    }

    fn state(&mut self, phase: Phase) -> Option<State> {
        self.0.state(phase)
    }
}
