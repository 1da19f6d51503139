//! Scripted device for the checks, with injectable faults.

use super::rig::{Rig, TimedWork};
use calorimeter_timing::{DeviceState, Failure, MockClock, MockWork, Observer, Phase, Script};
use serde_json::{Value, json};

/// Behavior of the scripted device; correct by default.
pub struct MockFaults {
    /// Extra nanoseconds of each launch.
    pub extra_launch_nanos: f64,
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
    pub hides_throttling: bool,
    /// Time of every second chain relative to the others.
    pub second_share: f64,
    /// Round the time of chains to powers of this base.
    pub rounding_base: f64,
    /// Settings reported by the sensors.
    pub facts: Value,
    /// Other users of the device.
    pub other_users: Vec<String>,
}

impl Default for MockFaults {
    fn default() -> Self {
        Self {
            extra_launch_nanos: 0.0,
            noise: 0.005,
            copy_gbps: 900.0,
            cached_share: 0.5,
            cold_share: 1.0,
            graph_share: 1.0,
            other_clock_share: 1.0,
            hides_throttling: false,
            second_share: 1.0,
            rounding_base: 1.0,
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
            other_users: Vec::new(),
        }
    }
}

/// Bytes of a copy that exceeds the cache.
const LARGE_COPY_BYTES: u64 = 1 << 30;

/// Scripted device.
pub struct MockRig {
    faults: MockFaults,
    seed: u64,
    clock: MockClock,
}

impl MockRig {
    /// Creates a device with these faults.
    pub fn new(faults: MockFaults) -> Self {
        Self { faults, seed: 0, clock: MockClock::new(Script::default()) }
    }

    /// Creates work on the clock that all work shares.
    fn scripted(&mut self, nanos: f64, bytes: u64, load: f64) -> TimedWork {
        self.seed += 1;
        let script = Script { nanos, load, noise: self.faults.noise, seed: self.seed, ..Script::default() };
        let stopwatch = Box::new(self.clock.with_shared_machine(script.clone()));
        let (work, _) = MockWork::pair(script);
        TimedWork { work: Box::new(work), stopwatch, bytes }
    }

    fn rounded(&self, nanos: f64) -> f64 {
        let base = self.faults.rounding_base;
        if base > 1.0 { base.powf(nanos.log(base).round()) } else { nanos }
    }
}

impl Rig for MockRig {
    fn spin(&mut self, steps: u64) -> Result<TimedWork, Failure> {
        let share = if self.seed % 2 == 1 { self.faults.second_share } else { 1.0 };
        Ok(self.scripted(self.rounded(steps as f64 + self.faults.extra_launch_nanos) * share, 0, 0.0))
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<TimedWork, Failure> {
        let share = match (bytes, sets) {
            (LARGE_COPY_BYTES.., _) => 1.0,
            (_, 1) => self.faults.cached_share,
            _ => self.faults.cold_share,
        };
        Ok(self.scripted(2.0 * bytes as f64 / self.faults.copy_gbps * share, 2 * bytes, 0.0))
    }

    fn large_copy(&mut self) -> Result<TimedWork, Failure> {
        self.copy(LARGE_COPY_BYTES, 2)
    }

    fn heavy_work(&mut self) -> Result<TimedWork, Failure> {
        // High enough that the mean of three interleaved works exceeds the power limit.
        Ok(self.scripted(1e6, 0, 6.0))
    }

    fn cached_copy(&self) -> (u64, u32) {
        (1 << 20, 100)
    }

    fn other_clocks(&mut self, steps: u64) -> Result<Vec<TimedWork>, Failure> {
        let shares = [self.faults.other_clock_share, self.faults.graph_share];
        Ok(shares.map(|share| self.scripted(steps as f64 * share, 0, 0.0)).into())
    }

    fn bandwidth(&mut self) -> Result<Option<f64>, Failure> {
        Ok(Some(1000.0))
    }

    fn observer(&mut self) -> Box<dyn Observer + '_> {
        Box::new(ScriptedSensors { clock: self.clock.clone(), hushed: self.faults.hides_throttling })
    }

    fn facts(&mut self) -> Value {
        self.faults.facts.clone()
    }

    fn other_users(&mut self) -> Result<Vec<String>, String> {
        Ok(self.faults.other_users.clone())
    }
}

/// Sensors of the scripted device.
struct ScriptedSensors {
    clock: MockClock,
    hushed: bool,
}

impl Observer for ScriptedSensors {
    fn state(&mut self, _: Phase) -> Option<DeviceState> {
        (!self.hushed).then(|| self.clock.state())
    }
}
