//! Scripted work and clock, for exact tests of the measurement without waiting.

use crate::{DeviceState, Failure, Overhead, Reading, Stopwatch, Work};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Script of a mock clock: the duration of launches.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Nanoseconds of one launch.
    pub nanos: f64,
    /// Relative noise of a window: uniform within plus and minus this share.
    pub noise: f64,
    /// Share of windows with a spike: longer by 30 % on average, exponentially distributed.
    pub spikes: f64,
    /// Drift of the speed. Clocks created by [`MockClock::with_shared_machine`] share the drift.
    pub drift: Option<Drift>,
    /// Power at the full clock as a share of the machine's cap; above 1 the machine is throttled.
    pub load: f64,
    /// Fixed cost of each window in nanoseconds.
    pub fixed: f64,
    /// Launches after which the work fails.
    pub fails_after: Option<u64>,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            nanos: 10_000.0,
            noise: 0.0,
            spikes: 0.0,
            drift: None,
            load: 0.0,
            fixed: 0.0,
            fails_after: None,
            seed: 0,
        }
    }
}

/// Stationary drift of the logarithm of the time: a first-order autoregression over the windows of all clocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Standard deviation.
    pub sd: f64,
    /// Windows after which the correlation has fallen to 1/e.
    pub windows: f64,
    /// Seed of the drift.
    pub seed: u64,
}

/// Mean relative length of a spike.
const MEAN_SPIKE: f64 = 0.3;

/// Work that does nothing except counting its launches.
pub struct MockWork {
    launched: u64,
    fails_after: Option<u64>,
}

impl MockWork {
    /// Creates a work and its clock, following one script.
    pub fn pair(script: Script) -> (Self, MockClock) {
        let work = Self { launched: 0, fails_after: script.fails_after };
        (work, MockClock::new(script))
    }
}

impl Work for MockWork {
    fn launch(&mut self) -> Result<(), Failure> {
        self.launched += 1;
        match self.fails_after {
            Some(limit) if self.launched > limit => Err("the scripted work failed".into()),
            _ => Ok(()),
        }
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Clock whose windows last as long as the script specifies.
#[derive(Clone)]
pub struct MockClock {
    script: Script,
    rng: ChaCha8Rng,
    machine: Arc<Mutex<MockMachine>>,
}

/// State shared by the clocks of a mock machine.
#[derive(Default)]
struct MockMachine {
    nanos: u64,
    drift: Option<DriftProcess>,
    /// Recent load, as a share of the cap.
    load: f64,
}

/// Clock of a mock machine below its power cap, in MHz.
const FULL_CLOCK_MHZ: f64 = 2000.0;
/// Time constant with which a machine follows a change of its load.
const LOAD_TIME_CONSTANT_NANOS: f64 = 1e8;

impl MockMachine {
    /// Slowdown by the power cap, as a factor on all times.
    fn slowdown(&self) -> f64 {
        self.load.max(1.0)
    }

    /// Advances the time under a load.
    fn advance(&mut self, nanos: u64, load: f64) {
        self.nanos += nanos;
        self.load = load + (self.load - load) * (-(nanos as f64) / LOAD_TIME_CONSTANT_NANOS).exp();
    }
}

impl MockClock {
    /// Creates a clock that starts at zero.
    pub fn new(script: Script) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(script.seed);
        let machine =
            Arc::new(Mutex::new(MockMachine { drift: script.drift.map(DriftProcess::new), ..MockMachine::default() }));
        Self { script, rng, machine }
    }

    /// Creates a clock for another arm of the same comparison: both share time and drift.
    pub fn with_shared_machine(&self, script: Script) -> Self {
        Self { machine: self.machine.clone(), ..Self::new(script) }
    }

    /// Sensor readings of the machine.
    pub fn state(&self) -> DeviceState {
        let slowdown = self.lock_machine().slowdown();
        DeviceState { clock_mhz: Some((FULL_CLOCK_MHZ / slowdown) as u32), throttled: slowdown > 1.0 }
    }

    fn lock_machine(&self) -> MutexGuard<'_, MockMachine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stopwatch for MockClock {
    fn name(&self) -> &'static str {
        "mock"
    }

    fn overhead(&self) -> Overhead {
        if self.script.fixed > 0.0 { Overhead::Included } else { Overhead::Excluded }
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        for _ in 0..launches {
            work.launch()?;
        }
        work.synchronize()?;
        let mut share = 1.0 + self.script.noise * self.rng.random_range(-1.0..=1.0);
        if self.script.spikes > 0.0 && self.rng.random_bool(self.script.spikes) {
            share *= 1.0 - MEAN_SPIKE * (1.0 - self.rng.random::<f64>()).ln();
        }
        let mut machine = self.lock_machine();
        share *= machine.drift.as_mut().map_or(1.0, DriftProcess::step) * machine.slowdown();
        let nanos = (self.script.fixed + self.script.nanos * f64::from(launches) * share).round() as u64;
        machine.advance(nanos, self.script.load);
        Ok(Reading::Ready(nanos))
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.lock_machine().nanos)
    }
}

/// State of a drift.
struct DriftProcess {
    drift: Drift,
    level: f64,
    rng: ChaCha8Rng,
}

impl DriftProcess {
    fn new(drift: Drift) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(drift.seed);
        Self { level: normal(&mut rng), drift, rng }
    }

    /// Factor on the time of the next window.
    fn step(&mut self) -> f64 {
        let correlation = (-1.0 / self.drift.windows).exp();
        self.level = correlation * self.level + (1.0 - correlation * correlation).sqrt() * normal(&mut self.rng);
        (self.drift.sd * self.level).exp()
    }
}

/// Standard normal sample, by the Box-Muller transform.
pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative durations of windows of a single launch.
    fn windows(clock: &mut MockClock, count: usize) -> Vec<f64> {
        let (mut work, nanos) = (MockWork { launched: 0, fails_after: None }, clock.script.nanos);
        (0..count).map(|_| clock.window(&mut work, 1).unwrap().resolve().unwrap() as f64 / nanos).collect()
    }

    fn quiet() -> Script {
        Script { nanos: 1e9, ..Script::default() }
    }

    #[test]
    fn spikes_match_frequency_and_length() {
        let times = windows(&mut MockClock::new(Script { spikes: 0.05, ..quiet() }), 100_000);
        let spikes: Vec<f64> = times.into_iter().filter(|&t| t > 1.0).collect();
        let mean = spikes.iter().sum::<f64>() / spikes.len() as f64;
        assert!((spikes.len() as f64 / 100_000.0 - 0.05).abs() < 0.003, "{}", spikes.len());
        assert!((mean - 1.3).abs() < 0.02, "{mean}");
    }

    #[test]
    fn drift_matches_deviation_and_time_constant() {
        let drift = Some(Drift { sd: 0.01, windows: 20.0, seed: 1 });
        let logs: Vec<f64> =
            windows(&mut MockClock::new(Script { drift, ..quiet() }), 100_000).iter().map(|t| t.ln()).collect();
        let product =
            |lag: usize| logs.iter().zip(&logs[lag..]).map(|(a, b)| a * b).sum::<f64>() / (logs.len() - lag) as f64;
        assert!((product(0).sqrt() / 0.01 - 1.0).abs() < 0.06, "{}", product(0).sqrt());
        assert!((product(20) / product(0) - (-1f64).exp()).abs() < 0.06, "{}", product(20) / product(0));
    }

    #[test]
    fn clocks_sharing_a_machine_share_drift() {
        let drift = Some(Drift { sd: 0.01, windows: 1e9, seed: 1 });
        let mut one = MockClock::new(Script { drift, ..quiet() });
        let mut other = one.with_shared_machine(quiet());
        let (a, b) = (windows(&mut one, 1)[0], windows(&mut other, 1)[0]);
        assert!((a - 1.0).abs() > 1e-4 && (a / b - 1.0).abs() < 1e-5, "{a} {b}");
        assert_eq!(one.now(), other.now());
    }
}
