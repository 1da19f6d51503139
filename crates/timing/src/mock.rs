//! A work and a clock that follow a script: everything that measures can be tested to the digit without waiting.

use crate::{Failure, Overhead, Reading, Stopwatch, Work};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a scripted launch takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Nanoseconds of one launch.
    pub nanos: f64,
    /// Relative noise of a window: uniform within plus and minus this share.
    pub noise: f64,
    /// Nanoseconds that every window costs besides its launches.
    pub fixed: f64,
    /// Launches after which the work fails.
    pub fails_after: Option<u64>,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for Script {
    fn default() -> Self {
        Self { nanos: 10_000.0, noise: 0.0, fixed: 0.0, fails_after: None, seed: 0 }
    }
}

/// A work that does nothing and counts its launches.
pub struct MockWork {
    launched: u64,
    fails_after: Option<u64>,
}

impl MockWork {
    /// A work and the clock that times it, following one script.
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

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A clock whose windows last as long as its script says.
pub struct MockClock {
    script: Script,
    rng: ChaCha8Rng,
    time: Arc<AtomicU64>,
}

impl MockClock {
    /// A clock that starts at zero.
    pub fn new(script: Script) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(script.seed);
        Self { script, rng, time: Arc::default() }
    }

    /// A clock for another arm of the same comparison: time passes for both.
    pub fn beside(&self, script: Script) -> Self {
        Self { time: self.time.clone(), ..Self::new(script) }
    }
}

impl Stopwatch for MockClock {
    fn name(&self) -> &'static str {
        "mock"
    }

    fn overhead(&self) -> Overhead {
        if self.script.fixed > 0.0 { Overhead::Inside } else { Overhead::Outside }
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        for _ in 0..launches {
            work.launch()?;
        }
        work.settle()?;
        let noise = 1.0 + self.script.noise * self.rng.random_range(-1.0..=1.0);
        let nanos = (self.script.fixed + self.script.nanos * f64::from(launches) * noise).round() as u64;
        self.time.fetch_add(nanos, Ordering::Relaxed);
        Ok(Reading::Now(nanos))
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.time.load(Ordering::Relaxed))
    }
}
