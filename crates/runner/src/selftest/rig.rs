//! What the checks run on: a real device, or a scripted one that can be told to lie.

use crate::devices::DiscoveredDevice;
use crate::peaks::Probe;
use crate::platforms;
use crate::platforms::Probed;
use crate::regimes::stopwatch;
use calorimeter_case::{Regime, buffer_sets};
use calorimeter_kernels::probes::Probes;
use calorimeter_timing::{Failure, MockClock, MockWork, Script, Stopwatch, Work};
use calorimeter_zoo::{Machines, Setup};

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
    /// The chain replayed from a captured graph, where there are graphs.
    fn graph(&mut self, steps: u64) -> Result<Option<Pair>, Failure>;
    /// What memory can do at most in 10⁹ bytes per second: as its maker states it, or as a probe measured it.
    fn bandwidth(&mut self) -> Result<Option<f64>, Failure>;
}

/// A device of this machine.
pub struct RealRig {
    found: DiscoveredDevice,
    machines: Machines,
    probes: Box<dyn Probes>,
}

impl RealRig {
    /// Opens the device.
    pub fn open(found: DiscoveredDevice) -> Result<Self, Failure> {
        let mut machines = Machines::default();
        let probes = platforms::of(found.device).probes(found.device, &mut machines)?;
        Ok(Self { found, machines, probes })
    }

    fn setup(&self) -> Setup {
        let device = self.found.device;
        Setup { implementation: platforms::of(device).probed_by(), device, sets: 1 }
    }

    fn pair(&mut self, probe: Box<dyn calorimeter_kernels::probes::Probe>, regime: Regime) -> Result<Pair, Failure> {
        let mut probe = probe;
        probe.check()?;
        let bytes = probe.bytes();
        let mut work: Box<dyn Work> = Box::new(Probed(probe));
        let (stopwatch, _) = stopwatch(regime, self.setup(), &mut self.machines, work.as_mut())?;
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

    fn graph(&mut self, steps: u64) -> Result<Option<Pair>, Failure> {
        let platform = platforms::of(self.found.device);
        if !platform.has_graphs(platform.probed_by()) {
            return Ok(None);
        }
        let probe = self.probes.spin(steps)?;
        self.pair(probe, Regime::Graph).map(Some)
    }

    fn bandwidth(&mut self) -> Result<Option<f64>, Failure> {
        if let Some(stated) = self.found.stated_gbps {
            return Ok(Some(stated));
        }
        let (told, device) = (self.found.facts(), self.found.device);
        let policy = String::new();
        Probe { told: &told, policy, device, may_tune: true, machines: &mut self.machines }
            .memory()
            .map(|looks| looks.peak())
            .map_err(Failure::from)
    }
}

/// What a scripted device does; as it is by default, it tells the truth.
pub struct Lies {
    /// Nanoseconds that each launch takes besides its steps.
    pub hidden_nanos: f64,
    /// Relative noise of a window.
    pub noise: f64,
    /// Speed of memory in 10⁹ bytes per second; 1000 is stated.
    pub copy_gbps: f64,
    /// Time of a cached copy over that from memory.
    pub cached_share: f64,
    /// Time of a replayed graph over that of the stream.
    pub graph_share: f64,
}

impl Default for Lies {
    fn default() -> Self {
        Self { hidden_nanos: 0.0, noise: 0.005, copy_gbps: 900.0, cached_share: 0.5, graph_share: 1.0 }
    }
}

/// A device that follows a script.
pub struct MockRig {
    lies: Lies,
    seed: u64,
    clock: MockClock,
}

impl MockRig {
    /// A device that lies in this way.
    pub fn new(lies: Lies) -> Self {
        Self { lies, seed: 0, clock: MockClock::new(Script::default()) }
    }

    /// Time passes for all works alike.
    fn scripted(&mut self, nanos: f64, bytes: u64) -> Pair {
        self.seed += 1;
        let script = Script { nanos, noise: self.lies.noise, seed: self.seed, ..Script::default() };
        let stopwatch = Box::new(self.clock.beside(script.clone()));
        let (work, _) = MockWork::pair(script);
        Pair { work: Box::new(work), stopwatch, bytes }
    }
}

impl Rig for MockRig {
    fn spin(&mut self, steps: u64) -> Result<Pair, Failure> {
        Ok(self.scripted(steps as f64 + self.lies.hidden_nanos, 0))
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Pair, Failure> {
        let share = if sets == 1 { self.lies.cached_share } else { 1.0 };
        Ok(self.scripted(2.0 * bytes as f64 / self.lies.copy_gbps * share, 2 * bytes))
    }

    fn large_copy(&mut self) -> Result<Pair, Failure> {
        self.copy(1 << 30, 2)
    }

    fn cached_copy(&self) -> (u64, u32) {
        (1 << 20, 100)
    }

    fn graph(&mut self, steps: u64) -> Result<Option<Pair>, Failure> {
        Ok(Some(self.scripted(steps as f64 * self.lies.graph_share, 0)))
    }

    fn bandwidth(&mut self) -> Result<Option<f64>, Failure> {
        Ok(Some(1000.0))
    }
}
