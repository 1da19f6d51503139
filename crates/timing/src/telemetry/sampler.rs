//! Background sampling of a source.

use super::{Sample, Source, now};
use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Maximum number of retained samples: several minutes.
const MAX_SAMPLES: usize = 4096;

/// Samples a source periodically in the background, until it is dropped.
pub struct Sampler {
    name: &'static str,
    shared: Arc<SamplerState>,
    /// Dropping this ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct SamplerState {
    source: Mutex<Box<dyn Source>>,
    /// Locked only briefly, so that readers of samples never wait for a sensor.
    samples: Mutex<VecDeque<Sample>>,
}

impl SamplerState {
    fn sample(&self) -> Sample {
        // Held until the sample is stored, so that samples remain in order.
        let mut source = lock(&self.source);
        let mut sample = source.sample();
        let mut samples = lock(&self.samples);
        // Sensors take milliseconds: with an earlier timestamp, the sample could precede a query that did not return
        // it.
        sample.at = now();
        if samples.len() == MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample.clone());
        sample
    }
}

/// Locks a mutex, ignoring poison: after a panic in one thread the source remains usable in another.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    /// Takes a first sample, then one after every `period`, on its own thread.
    pub fn start(source: Box<dyn Source>, period: Duration) -> std::io::Result<Self> {
        let name = source.name();
        let shared = Arc::new(SamplerState { source: Mutex::new(source), samples: Mutex::default() });
        shared.sample();
        let (end, ended) = channel::<()>();
        let watched = shared.clone();
        let sample = move || {
            while ended.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                watched.sample();
            }
        };
        let thread = thread::Builder::new().spawn(sample)?;
        Ok(Self { name, shared, end: Some(end), thread: Some(thread) })
    }

    /// Name of the source.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Latest sample.
    pub fn latest(&self) -> Sample {
        let last = lock(&self.shared.samples).back().cloned();
        last.expect("a sample is taken at the start, and only newer ones replace it")
    }

    /// Retained samples taken at or after a moment of [`now`](super::now).
    pub fn samples_since(&self, at: Duration) -> Vec<Sample> {
        let samples = lock(&self.shared.samples);
        samples.range(samples.partition_point(|sample| sample.at < at)..).cloned().collect()
    }

    /// Samples now, on the calling thread, which may take milliseconds: for the end of a round that is shorter than the
    /// period.
    pub fn sample(&self) -> Sample {
        self.shared.sample()
    }

    /// Energy used so far, queried now on the calling thread. See [`Source::joules`].
    pub fn joules(&self) -> Option<f64> {
        lock(&self.shared.source).joules()
    }

    /// Other users of the device, queried now on the calling thread. See [`Source::other_users`].
    pub fn other_users(&self, ours: &[u32]) -> Result<Vec<String>, String> {
        lock(&self.shared.source).other_users(ours)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the source has been printed and must not fail the measurement.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const LONG_PERIOD: Duration = Duration::from_secs(3600);

    /// Source that counts its samples in `clock_mhz`.
    #[derive(Default)]
    struct Scripted {
        taken: u32,
        panics_at: Option<u32>,
        /// Shared with a test that checks when the source is dropped.
        alive: Arc<()>,
    }

    impl Source for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }
        fn sample(&mut self) -> Sample {
            self.taken += 1;
            assert_ne!(self.panics_at, Some(self.taken), "the script says so");
            // A timestamp from before the sensors were read.
            Sample { at: Duration::ZERO, clock_mhz: Some(self.taken), ..Sample::default() }
        }
        fn joules(&mut self) -> Option<f64> {
            Some(f64::from(self.taken) / 2.0)
        }
        fn other_users(&mut self, ours: &[u32]) -> Result<Vec<String>, String> {
            Ok(vec![format!("not {ours:?}")])
        }
        fn facts(&self) -> Value {
            json!({})
        }
        fn policy(&self) -> String {
            String::new()
        }
    }

    fn start(source: Scripted, period: Duration) -> Sampler {
        Sampler::start(Box::new(source), period).unwrap()
    }

    fn clocks(samples: &[Sample]) -> Vec<u32> {
        samples.iter().filter_map(|sample| sample.clock_mhz).collect()
    }

    #[test]
    fn thread_samples_periodically() {
        let sampler = start(Scripted::default(), Duration::from_millis(1));
        while sampler.latest().clock_mhz < Some(5) {
            thread::yield_now();
        }
        assert_eq!(clocks(&sampler.samples_since(Duration::ZERO))[..5], [1, 2, 3, 4, 5]);
    }

    #[test]
    fn samples_since_a_round_start() {
        let sampler = start(Scripted::default(), LONG_PERIOD);
        let round = now();
        sampler.sample();
        sampler.sample();
        assert_eq!(clocks(&sampler.samples_since(round)), [2, 3]);
        assert_eq!(clocks(&sampler.samples_since(Duration::ZERO)), [1, 2, 3]);
        assert!(sampler.samples_since(LONG_PERIOD).is_empty());
        assert_eq!(sampler.latest().clock_mhz, Some(3));
    }

    #[test]
    fn queries_reach_the_source() {
        let sampler = start(Scripted::default(), LONG_PERIOD);
        assert_eq!(sampler.name(), "scripted");
        assert_eq!(sampler.joules(), Some(0.5));
        assert_eq!(sampler.other_users(&[7]).unwrap(), ["not [7]"]);
    }

    #[test]
    fn oldest_samples_are_dropped() {
        let sampler = start(Scripted::default(), LONG_PERIOD);
        (0..MAX_SAMPLES + 9).for_each(|_| drop(sampler.sample()));
        let samples = clocks(&sampler.samples_since(Duration::ZERO));
        assert_eq!((samples.len(), samples[0], samples[MAX_SAMPLES - 1]), (MAX_SAMPLES, 11, MAX_SAMPLES as u32 + 10));
    }

    #[test]
    fn drop_ends_the_thread() {
        let source = Scripted::default();
        let alive = source.alive.clone();
        drop(start(source, LONG_PERIOD));
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn panicking_source_is_tolerated() {
        let sampler = start(Scripted { panics_at: Some(3), ..Scripted::default() }, Duration::from_millis(1));
        while !sampler.thread.as_ref().unwrap().is_finished() {
            thread::yield_now();
        }
        assert_eq!(sampler.latest().clock_mhz, Some(2));
        assert_eq!(sampler.sample().clock_mhz, Some(4));
    }
}
