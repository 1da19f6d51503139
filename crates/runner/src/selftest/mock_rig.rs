//! Scripted device for the checks, with injectable faults.

use super::rig::{Pair, Rig};
use calorimeter_timing::{Failure, MockClock, MockWork, Observer, Phase, Script, State};
use serde_json::{Value, json};

/// Behavior of the scripted device; correct by default.
pub struct Lies {
    /// Extra nanoseconds of each launch.
    pub hidden_nanos: f64,
    /// Relative noise of a window.
    pub noise: f64,
    /// Memory bandwidth in GB/s; the stated one is 1000.
    pub copy_gbps: f64,
    /// Time of a cached copy relative to one from memory.
    pub cached_share: f64,
    /// Time of a small copy that rotates through many buffer sets, relative to one from memory.
    pub cold_share: f64,
    /// Time of a replayed graph relative to stream launches.
    pub graph_share: f64,
    /// Time of the second stopwatch relative to the first.
    pub other_clock_share: f64,
    /// Hide throttling from the sensors.
    pub hushed: bool,
    /// Time of every second chain relative to the others.
    pub second_share: f64,
    /// Round the time of chains to powers of this base.
    pub coarseness: f64,
    /// Settings reported by the sensors.
    pub facts: Value,
    /// Other users of the device.
    pub others: Vec<String>,
}

impl Default for Lies {
    fn default() -> Self {
        Self {
            hidden_nanos: 0.0,
            noise: 0.005,
            copy_gbps: 900.0,
            cached_share: 0.5,
            cold_share: 1.0,
            graph_share: 1.0,
            other_clock_share: 1.0,
            hushed: false,
            second_share: 1.0,
            coarseness: 1.0,
            facts: json!({
                "persistence_mode": true,
                "mig": false,
                "ecc": true,
                "application_clocks": "1980/2619 MHz",
                "default_application_clocks": "1980/2619 MHz",
                "clock_offsets": "0/0 MHz",
                "power_limit_w": 700,
                "default_power_limit_w": 700,
                "governor": "performance",
                "turbo": false,
                "smt": false,
                "virtual_machine": false,
            }),
            others: Vec::new(),
        }
    }
}

/// Bytes of a copy that exceeds the cache.
const LARGE: u64 = 1 << 30;

/// Scripted device.
pub struct MockRig {
    lies: Lies,
    seed: u64,
    clock: MockClock,
}

impl MockRig {
    /// Creates a device with these faults.
    pub fn new(lies: Lies) -> Self {
        Self { lies, seed: 0, clock: MockClock::new(Script::default()) }
    }

    /// Creates work on the clock that all work shares.
    fn scripted(&mut self, nanos: f64, bytes: u64, load: f64) -> Pair {
        self.seed += 1;
        let script = Script { nanos, load, noise: self.lies.noise, seed: self.seed, ..Script::default() };
        let stopwatch = Box::new(self.clock.beside(script.clone()));
        let (work, _) = MockWork::pair(script);
        Pair { work: Box::new(work), stopwatch, bytes }
    }

    fn rounded(&self, nanos: f64) -> f64 {
        let base = self.lies.coarseness;
        if base > 1.0 { base.powf(nanos.log(base).round()) } else { nanos }
    }
}

impl Rig for MockRig {
    fn spin(&mut self, steps: u64) -> Result<Pair, Failure> {
        let share = if self.seed % 2 == 1 { self.lies.second_share } else { 1.0 };
        Ok(self.scripted(self.rounded(steps as f64 + self.lies.hidden_nanos) * share, 0, 0.0))
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Pair, Failure> {
        let share = match (bytes, sets) {
            (LARGE.., _) => 1.0,
            (_, 1) => self.lies.cached_share,
            _ => self.lies.cold_share,
        };
        Ok(self.scripted(2.0 * bytes as f64 / self.lies.copy_gbps * share, 2 * bytes, 0.0))
    }

    fn large_copy(&mut self) -> Result<Pair, Failure> {
        self.copy(LARGE, 2)
    }

    fn heavy(&mut self) -> Result<Pair, Failure> {
        // High enough that the mean of three interleaved works exceeds the power limit.
        Ok(self.scripted(1e6, 0, 6.0))
    }

    fn cached_copy(&self) -> (u64, u32) {
        (1 << 20, 100)
    }

    fn other_clocks(&mut self, steps: u64) -> Result<Vec<Pair>, Failure> {
        let shares = [self.lies.other_clock_share, self.lies.graph_share];
        Ok(shares.map(|share| self.scripted(steps as f64 * share, 0, 0.0)).into())
    }

    fn bandwidth(&mut self) -> Result<Option<f64>, Failure> {
        Ok(Some(1000.0))
    }

    fn observer(&mut self) -> Box<dyn Observer + '_> {
        Box::new(ScriptedSensors { clock: self.clock.clone(), hushed: self.lies.hushed })
    }

    fn facts(&mut self) -> Value {
        self.lies.facts.clone()
    }

    fn others(&mut self) -> Result<Vec<String>, String> {
        Ok(self.lies.others.clone())
    }
}

/// Sensors of the scripted device.
struct ScriptedSensors {
    clock: MockClock,
    hushed: bool,
}

impl Observer for ScriptedSensors {
    fn state(&mut self, _: Phase) -> Option<State> {
        (!self.hushed).then(|| self.clock.state())
    }
}
