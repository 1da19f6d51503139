//! Noise models of real machines.

use crate::mock::normal;
use crate::{Failure, Overhead, Reading, Stopwatch, Work, median};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Distribution of the logarithm of a window's time.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub(super) enum NoiseModel {
    /// Normal with this standard deviation.
    Normal(f64),
    /// Autoregression with coefficient 0.5 and deviation 1 % over all windows of the machine, plus 0.3 % of independent
    /// noise.
    SharedAutoregression,
    /// Autoregression with coefficient 0.5 and deviation 1 % over the windows of each arm.
    ArmAutoregression,
    /// Shared drift of 0.5 % over 500 windows, plus 0.5 % of independent noise.
    Drift,
    /// Machine that switches between two clocks 4 % apart every 25 windows, plus 0.3 % of independent noise.
    TwoClocks,
    /// 30 % of the windows are 4 % longer, plus 0.3 % of independent noise.
    Bimodal,
    /// 5 % of the windows are longer, by 30 % on average; plus 1 % of uniform noise.
    Spikes,
    /// Long tail: 2 % of a Pareto variable of index 1.2.
    LongTail,
}

/// State shared by all arms of a machine.
#[derive(Debug)]
pub(super) struct NoisyMachine {
    nanos: u64,
    level: f64,
    slow: bool,
    rng: ChaCha8Rng,
}

/// Clock of a noisy machine; its work does nothing.
pub(super) struct NoisyClock {
    noise: NoiseModel,
    nanos: f64,
    level: f64,
    rng: ChaCha8Rng,
    machine: Arc<Mutex<NoisyMachine>>,
}

/// Work that does nothing.
pub(super) struct NoopWork;

impl Work for NoopWork {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

impl NoiseModel {
    /// Creates clocks of one machine, for arms with these times per launch in nanoseconds.
    pub(super) fn clocks(self, nanos: &[f64], seed: u64) -> Vec<NoisyClock> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (level, slow) = (normal(&mut rng), rng.random_bool(0.5));
        let machine = Arc::new(Mutex::new(NoisyMachine { nanos: 0, level, slow, rng }));
        let clock = |(index, &nanos): (usize, &f64)| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(1 + index as u64);
            NoisyClock { noise: self, nanos, level: normal(&mut rng), rng, machine: machine.clone() }
        };
        nanos.iter().enumerate().map(clock).collect()
    }

    /// Long-run median of a window's time, relative to the time of its launches.
    pub(super) fn long_run_median(self) -> f64 {
        match self {
            Self::Bimodal | Self::Spikes | Self::LongTail => {
                let mut clock = self.clocks(&[1e9], u64::MAX).remove(0);
                median(&(0..200_000).map(|_| clock.factor()).collect::<Vec<_>>()).unwrap()
            }
            // Half of the time each: every value between the clocks is a median.
            Self::TwoClocks => f64::NAN,
            _ => 1.0,
        }
    }
}

impl NoisyClock {
    fn machine(&self) -> MutexGuard<'_, NoisyMachine> {
        self.machine.lock().unwrap()
    }

    /// Time of the next window, relative to the time of its launches.
    fn factor(&mut self) -> f64 {
        let own = normal(&mut self.rng);
        let exponent = match self.noise {
            NoiseModel::Normal(deviation) => deviation * own,
            NoiseModel::SharedAutoregression => 0.01 * self.machine().next_autoregressive(0.5) + 0.003 * own,
            NoiseModel::ArmAutoregression => {
                self.level = 0.5 * self.level + 0.75f64.sqrt() * own;
                0.01 * self.level
            }
            NoiseModel::Drift => 0.005 * (self.machine().next_autoregressive((-1.0 / 500.0f64).exp()) + own),
            NoiseModel::TwoClocks => 0.04 * f64::from(u8::from(self.machine().next_is_slow(25.0))) + 0.003 * own,
            NoiseModel::Bimodal => 0.04 * f64::from(u8::from(self.rng.random_bool(0.3))) + 0.003 * own,
            NoiseModel::Spikes => {
                let spike = if self.rng.random_bool(0.05) { -0.3 * (1.0 - self.rng.random::<f64>()).ln() } else { 0.0 };
                0.01 * self.rng.random_range(-1.0..=1.0) + spike.ln_1p()
            }
            NoiseModel::LongTail => (0.02 * ((1.0 - self.rng.random::<f64>()).powf(-1.0 / 1.2) - 1.0)).ln_1p(),
        };
        exponent.exp()
    }
}

impl NoisyMachine {
    /// Next value of the shared autoregression.
    fn next_autoregressive(&mut self, kept: f64) -> f64 {
        self.level = kept * self.level + (1.0 - kept * kept).sqrt() * normal(&mut self.rng);
        self.level
    }

    /// True if the machine runs at its slower clock; it switches every `dwells` windows on average.
    fn next_is_slow(&mut self, dwells: f64) -> bool {
        self.slow ^= self.rng.random_bool(1.0 / dwells);
        self.slow
    }
}

impl Stopwatch for NoisyClock {
    fn name(&self) -> &'static str {
        "noisy"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Excluded
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        (0..launches).try_for_each(|_| work.launch())?;
        let nanos = (self.nanos * f64::from(launches) * self.factor()).round() as u64;
        self.machine().nanos += nanos;
        Ok(Reading::Ready(nanos))
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.machine().nanos)
    }
}
