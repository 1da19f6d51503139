//! What the checks run on: a device of this machine, or anything that stands for one.

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

/// A work, the clock that times it, and the bytes that a launch moves.
pub struct Pair {
    pub work: Box<dyn Work>,
    pub stopwatch: Box<dyn Stopwatch>,
    pub bytes: u64,
}

/// Computations of known cost.
pub trait Rig {
    /// How long a chain should take: far above any clock's step, and what a launch itself costs, far below any watchdog.
    fn spin_nanos(&self) -> f64 {
        300_000.0
    }
    /// Whether a launch takes so long that it shows beside a chain.
    fn launching_takes_long(&self) -> bool {
        false
    }
    /// A chain of so many dependent steps.
    fn spin(&mut self, steps: u64) -> Result<Pair, Failure>;
    /// A copy of so many bytes that goes through so many sets of buffers.
    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Pair, Failure>;
    /// A copy far larger than the cache.
    fn large_copy(&mut self) -> Result<Pair, Failure>;
    /// Bytes of a copy that the cache holds, and the sets with which it does not.
    fn cached_copy(&self) -> (u64, u32);
    /// A work that needs as much power as one of known size can.
    fn heavy(&mut self) -> Result<Pair, Failure> {
        self.large_copy()
    }
    /// The chain on every other clock of the device, replayed from a captured graph included.
    fn other_clocks(&mut self, steps: u64) -> Result<Vec<Pair>, Failure>;
    /// What memory can do at most in 10⁹ bytes per second: as its maker states it, or as a probe measured it.
    fn bandwidth(&mut self) -> Result<Option<f64>, Failure>;
    /// Somebody who looks at the device's sensors, as where cases are measured.
    fn observer(&mut self) -> Box<dyn Observer + '_>;
    /// What its sensors tell of how it is set up.
    fn facts(&mut self) -> Value;
    /// Who else uses it, or why nobody can tell.
    fn others(&mut self) -> Result<Vec<String>, String>;
}

/// A device of this machine.
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

    /// A probe with the stopwatch that its setup has in a regime.
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

    // A processor that imitates a GPU starts threads for each launch, and cuts off loops that run for long.
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
        // A sixteenth to read and one to write stay in the cache beside whatever else is there.
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
        let (told, device) = (self.found.facts(), self.found.device);
        let policy = self.sensors.policy();
        Probe { told: &told, policy, device, may_tune: true, machines: &mut self.machines }
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

/// Looks at the sensors between windows.
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
