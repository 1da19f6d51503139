//! Machines whose windows scatter in the ways that real ones do.

use crate::mock::normal;
use crate::{Failure, Overhead, Reading, Stopwatch, Work, median};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How the logarithm of a window's time scatters.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Noise {
    /// Normal, with this deviation.
    Normal(f64),
    /// Each value half the one before and half new, 1 %: over all windows of the machine, besides 0.3 % of each.
    ResemblingOfMachine,
    /// The same over the windows of each arm.
    ResemblingOfArm,
    /// A shared drift of 0.5 % over 500 windows, besides 0.5 % of each.
    Drift,
    /// The machine changes between two clocks that are 4 % apart every 25 windows, besides 0.3 % of each.
    TwoClocks,
    /// Three windows in ten are 4 % longer, besides 0.3 % of each.
    TwoKinds,
    /// One window in twenty is longer, by 30 % on average; 1 %, even, of each.
    Spikes,
    /// A long tail: 2 % of a Pareto variable of index 1.2.
    LongTail,
}

/// What all arms of a machine share.
#[derive(Debug)]
pub struct Machine {
    nanos: u64,
    level: f64,
    slow: bool,
    rng: ChaCha8Rng,
}

/// A clock on such a machine; its work does nothing.
pub struct NoisyClock {
    noise: Noise,
    nanos: f64,
    level: f64,
    rng: ChaCha8Rng,
    machine: Arc<Mutex<Machine>>,
}

/// Does nothing.
pub struct Idle;

impl Work for Idle {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Noise {
    /// Clocks of arms whose launches take so many nanoseconds, on one machine.
    pub fn clocks(self, nanos: &[f64], seed: u64) -> Vec<NoisyClock> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (level, slow) = (normal(&mut rng), rng.random_bool(0.5));
        let machine = Arc::new(Mutex::new(Machine { nanos: 0, level, slow, rng }));
        let clock = |(index, &nanos): (usize, &f64)| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(1 + index as u64);
            NoisyClock { noise: self, nanos, level: normal(&mut rng), rng, machine: machine.clone() }
        };
        nanos.iter().enumerate().map(clock).collect()
    }

    /// The median of a window's time in the long run, over the time of its launches.
    pub fn long_run(self) -> f64 {
        match self {
            Self::TwoKinds | Self::Spikes | Self::LongTail => {
                let mut clock = self.clocks(&[1e9], u64::MAX).remove(0);
                median(&(0..200_000).map(|_| clock.factor()).collect::<Vec<_>>()).unwrap()
            }
            // Half of the time each: any value between the clocks is a median.
            Self::TwoClocks => f64::NAN,
            _ => 1.0,
        }
    }
}

impl NoisyClock {
    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap()
    }

    /// The next window's time over that of its launches.
    fn factor(&mut self) -> f64 {
        let own = normal(&mut self.rng);
        let exponent = match self.noise {
            Noise::Normal(deviation) => deviation * own,
            Noise::ResemblingOfMachine => 0.01 * self.machine().resembling(0.5) + 0.003 * own,
            Noise::ResemblingOfArm => {
                self.level = 0.5 * self.level + 0.75f64.sqrt() * own;
                0.01 * self.level
            }
            Noise::Drift => 0.005 * (self.machine().resembling((-1.0 / 500.0f64).exp()) + own),
            Noise::TwoClocks => 0.04 * f64::from(u8::from(self.machine().slow(25.0))) + 0.003 * own,
            Noise::TwoKinds => 0.04 * f64::from(u8::from(self.rng.random_bool(0.3))) + 0.003 * own,
            Noise::Spikes => {
                let spike = if self.rng.random_bool(0.05) { -0.3 * (1.0 - self.rng.random::<f64>()).ln() } else { 0.0 };
                0.01 * self.rng.random_range(-1.0..=1.0) + spike.ln_1p()
            }
            Noise::LongTail => (0.02 * ((1.0 - self.rng.random::<f64>()).powf(-1.0 / 1.2) - 1.0)).ln_1p(),
        };
        exponent.exp()
    }
}

impl Machine {
    /// The next value of a shared autoregression.
    fn resembling(&mut self, kept: f64) -> f64 {
        self.level = kept * self.level + (1.0 - kept * kept).sqrt() * normal(&mut self.rng);
        self.level
    }

    /// Whether the machine runs at its slower clock, which it changes every so many windows.
    fn slow(&mut self, dwells: f64) -> bool {
        self.slow ^= self.rng.random_bool(1.0 / dwells);
        self.slow
    }
}

impl Stopwatch for NoisyClock {
    fn name(&self) -> &'static str {
        "noisy"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Outside
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        (0..launches).try_for_each(|_| work.launch())?;
        let nanos = (self.nanos * f64::from(launches) * self.factor()).round() as u64;
        self.machine().nanos += nanos;
        Ok(Reading::Now(nanos))
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.machine().nanos)
    }
}
