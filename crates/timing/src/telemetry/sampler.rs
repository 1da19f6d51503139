//! A thread that looks at a source again and again.

use super::{Sample, Source, now};
use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Samples kept: those of the last minutes.
const KEPT: usize = 4096;

/// Looks at a source in the background, once in every period, until it is dropped.
pub struct Sampler {
    name: &'static str,
    shared: Arc<Shared>,
    /// The thread waits for this to be dropped.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    source: Mutex<Box<dyn Source>>,
    /// Locked for moments only, so that whoever reads samples never waits for a sensor.
    samples: Mutex<VecDeque<Sample>>,
}

impl Shared {
    fn sample(&self) -> Sample {
        // Held until the sample is stored: samples stay in order.
        let mut source = lock(&self.source);
        let mut sample = source.sample();
        let mut samples = lock(&self.samples);
        // Sensors take milliseconds: stamped before, it could be older than a look that did not find it.
        sample.at = now();
        if samples.len() == KEPT {
            samples.pop_front();
        }
        samples.push_back(sample.clone());
        sample
    }
}

/// A source that panicked in one thread is still worth asking in another.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    /// Takes a first sample, then one after every `period`, on a thread of its own, if one can be had.
    pub fn start(source: Box<dyn Source>, period: Duration) -> std::io::Result<Self> {
        let name = source.name();
        let shared = Arc::new(Shared { source: Mutex::new(source), samples: Mutex::default() });
        shared.sample();
        let (end, ended) = channel::<()>();
        let watched = shared.clone();
        let look = move || {
            while ended.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                watched.sample();
            }
        };
        let thread = thread::Builder::new().spawn(look)?;
        Ok(Self { name, shared, end: Some(end), thread: Some(thread) })
    }

    /// The source's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The last sample.
    pub fn latest(&self) -> Sample {
        let last = lock(&self.shared.samples).back().cloned();
        last.expect("the first sample was taken at the start, and only others make room")
    }

    /// The samples taken at or after a moment of [`now`](super::now), as far as they are kept.
    pub fn since(&self, at: Duration) -> Vec<Sample> {
        let samples = lock(&self.shared.samples);
        samples.range(samples.partition_point(|sample| sample.at < at)..).cloned().collect()
    }

    /// Looks now, from this thread, which may take milliseconds: for the end of a round that is shorter than the period.
    pub fn sample(&self) -> Sample {
        self.shared.sample()
    }

    /// Energy used so far; the source is asked now, from this thread. See [`Source::joules`].
    pub fn joules(&self) -> Option<f64> {
        lock(&self.shared.source).joules()
    }

    /// Who else uses the device; the source is asked now, from this thread. See [`Source::others`].
    pub fn others(&self, ours: &[u32]) -> Result<Vec<String>, String> {
        lock(&self.shared.source).others(ours)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A source's panic has been printed, and it must not become one of the measurement.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NEVER: Duration = Duration::from_secs(3600);

    /// Counts its samples in `clock_mhz`.
    #[derive(Default)]
    struct Scripted {
        taken: u32,
        panics_at: Option<u32>,
        /// Shared with a test that wants to know whether this still exists.
        alive: Arc<()>,
    }

    impl Source for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }
        fn sample(&mut self) -> Sample {
            self.taken += 1;
            assert_ne!(self.panics_at, Some(self.taken), "the script says so");
            // As if reading the sensors had taken since the process began.
            Sample { at: Duration::ZERO, clock_mhz: Some(self.taken), ..Sample::default() }
        }
        fn joules(&mut self) -> Option<f64> {
            Some(f64::from(self.taken) / 2.0)
        }
        fn others(&mut self, ours: &[u32]) -> Result<Vec<String>, String> {
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
    fn the_thread_samples_by_itself() {
        let sampler = start(Scripted::default(), Duration::from_millis(1));
        while sampler.latest().clock_mhz < Some(5) {
            thread::yield_now();
        }
        assert_eq!(clocks(&sampler.since(Duration::ZERO))[..5], [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_round_finds_the_samples_taken_in_it() {
        let sampler = start(Scripted::default(), NEVER);
        let round = now();
        sampler.sample();
        sampler.sample();
        assert_eq!(clocks(&sampler.since(round)), [2, 3]);
        assert_eq!(clocks(&sampler.since(Duration::ZERO)), [1, 2, 3]);
        assert!(sampler.since(NEVER).is_empty());
        assert_eq!(sampler.latest().clock_mhz, Some(3));
    }

    #[test]
    fn questions_reach_the_source() {
        let sampler = start(Scripted::default(), NEVER);
        assert_eq!(sampler.name(), "scripted");
        assert_eq!(sampler.joules(), Some(0.5));
        assert_eq!(sampler.others(&[7]).unwrap(), ["not [7]"]);
    }

    #[test]
    fn old_samples_make_room() {
        let sampler = start(Scripted::default(), NEVER);
        (0..KEPT + 9).for_each(|_| drop(sampler.sample()));
        let kept = clocks(&sampler.since(Duration::ZERO));
        assert_eq!((kept.len(), kept[0], kept[KEPT - 1]), (KEPT, 11, KEPT as u32 + 10));
    }

    #[test]
    fn dropping_it_ends_the_thread_at_once() {
        let source = Scripted::default();
        let alive = source.alive.clone();
        drop(start(source, NEVER));
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[test]
    fn a_source_that_panics_does_not_end_the_measurement() {
        let sampler = start(Scripted { panics_at: Some(3), ..Scripted::default() }, Duration::from_millis(1));
        while !sampler.thread.as_ref().unwrap().is_finished() {
            thread::yield_now();
        }
        assert_eq!(sampler.latest().clock_mhz, Some(2));
        assert_eq!(sampler.sample().clock_mhz, Some(4));
    }
}
