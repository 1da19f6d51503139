//! CPU hardware counters of this process: cycles, instructions, cache misses.

/// User-space counts of all threads of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterValues {
    /// CPU cycles.
    pub cycles: u64,
    /// Completed instructions.
    pub instructions: u64,
    /// Misses of the last cache level with a counter; absent if there is none.
    pub cache_misses: Option<u64>,
}

#[cfg(target_os = "linux")]
pub use linux::Counters;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::Counters;

#[cfg(target_os = "linux")]
mod linux {
    use super::CounterValues;
    use crate::telemetry::files::read_text;
    use perf_event::events::{Event, Hardware};
    use perf_event::{Builder, Counter};
    use std::io::{Error, ErrorKind, Result as IoResult};
    use std::time::Duration;

    /// Hardware counters through Linux perf events.
    pub struct Counters {
        cycles: EventCounter,
        instructions: EventCounter,
        cache_misses: Option<EventCounter>,
    }

    impl Counters {
        /// Opens counters for all current threads and the threads they will start, or returns why there are none.
        pub fn open() -> Result<Self, String> {
            let open = |what, event| EventCounter::open(event).map_err(|error| open_error(what, &error));
            Ok(Self {
                cycles: open("cycles", Hardware::CPU_CYCLES)?,
                instructions: open("instructions", Hardware::INSTRUCTIONS)?,
                cache_misses: EventCounter::open(Hardware::CACHE_MISSES).ok(),
            })
        }

        /// Begins a span.
        pub fn start(&mut self) -> Result<(), String> {
            let Self { cycles, instructions, cache_misses } = self;
            let mut tallies = [Some(cycles), Some(instructions), cache_misses.as_mut()];
            tallies.iter_mut().flatten().try_for_each(|tally| tally.start()).map_err(read_error)
        }

        /// Returns the counts since the span began, scaled if the kernel multiplexed the counters.
        pub fn read(&mut self) -> Result<CounterValues, String> {
            let never_ran =
                |what| format!("the kernel never scheduled the counter of {what}: other programs use them all");
            let misses = self.cache_misses.as_mut().map(EventCounter::since_start).transpose().map_err(read_error)?;
            Ok(CounterValues {
                cycles: self.cycles.since_start().map_err(read_error)?.ok_or_else(|| never_ran("cycles"))?,
                instructions: self
                    .instructions
                    .since_start()
                    .map_err(read_error)?
                    .ok_or_else(|| never_ran("instructions"))?,
                cache_misses: misses.flatten(),
            })
        }
    }

    /// Counter of one event on every thread, with the readings at the start of the span.
    struct EventCounter {
        threads: Vec<(Counter, CounterReading)>,
    }

    /// A count with the time it was enabled and the time it was running.
    #[derive(Clone, Copy, Default)]
    struct CounterReading {
        count: u64,
        enabled: Duration,
        running: Duration,
    }

    impl EventCounter {
        fn open(event: impl Event + Copy) -> IoResult<Self> {
            let mut threads = vec![];
            for task in std::fs::read_dir("/proc/self/task")? {
                let Some(thread) = task?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                match Builder::new(event).observe_pid(thread).inherit(true).enabled(true).build() {
                    Ok(counter) => threads.push((counter, CounterReading::default())),
                    Err(error) if error.raw_os_error() == Some(NO_SUCH_PROCESS) => {} // the thread has just ended
                    Err(error) => return Err(error),
                }
            }
            Ok(Self { threads })
        }

        fn start(&mut self) -> IoResult<()> {
            for (counter, begun) in &mut self.threads {
                *begun = read_counter(counter)?;
            }
            Ok(())
        }

        /// Sum over the threads, or `None` if a counter was never scheduled.
        fn since_start(&mut self) -> IoResult<Option<u64>> {
            let mut sum = Some(0);
            for (counter, begun) in &mut self.threads {
                let now = read_counter(counter)?;
                sum = sum.zip(scale_multiplexed(*begun, now)).map(|(sum, count)| sum + count);
            }
            Ok(sum)
        }
    }

    fn read_counter(counter: &mut Counter) -> IoResult<CounterReading> {
        let data = counter.read_full()?;
        let time = |time: Option<Duration>| time.unwrap_or_default();
        Ok(CounterReading {
            count: data.count(),
            enabled: time(data.time_enabled()),
            running: time(data.time_running()),
        })
    }

    fn scale_multiplexed(begun: CounterReading, now: CounterReading) -> Option<u64> {
        let count = now.count - begun.count;
        let (enabled, running) = (now.enabled - begun.enabled, now.running - begun.running);
        if enabled == running {
            return Some(count);
        }
        (!running.is_zero()).then(|| (count as f64 * enabled.as_secs_f64() / running.as_secs_f64()).round() as u64)
    }

    /// `ESRCH` and `ENODEV`, for which the standard library has no error kinds.
    const NO_SUCH_PROCESS: i32 = 3;
    const NO_SUCH_DEVICE: i32 = 19;

    fn open_error(what: &str, error: &Error) -> String {
        let missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unsupported)
            || error.raw_os_error() == Some(NO_SUCH_DEVICE);
        let hint = if error.kind() == ErrorKind::PermissionDenied {
            let level = read_text("/proc/sys/kernel/perf_event_paranoid").unwrap_or_else(|| "not readable".to_owned());
            format!(
                "; /proc/sys/kernel/perf_event_paranoid is {level} and must be 2 or less; \
                 a container must be allowed to call perf_event_open as well"
            )
        } else if missing {
            "; this processor, or the virtual machine, has no such counter".to_owned()
        } else {
            String::new()
        };
        format!("the kernel does not count {what}: {error}{hint}")
    }

    fn read_error(error: Error) -> String {
        format!("a hardware counter cannot be read: {error}")
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn counts_other_threads_or_reports_why_not() {
            let (to, work) = std::sync::mpsc::channel::<u64>();
            let thread =
                std::thread::spawn(move || work.iter().map(|n| (0..n).map(std::hint::black_box).sum::<u64>()).sum());
            let counted = Counters::open().and_then(|mut counters| {
                counters.start()?;
                let before = counters.read()?;
                to.send(1_000_000).unwrap();
                drop(to);
                let sum: u64 = thread.join().unwrap();
                assert_eq!(sum, 499_999_500_000);
                Ok((before, counters.read()?))
            });
            match counted {
                Ok((before, after)) => {
                    println!("{before:?} {after:?}");
                    assert!(after.instructions > before.instructions + 1_000_000 && after.cycles > before.cycles);
                }
                Err(reason) => {
                    println!("{reason}");
                    assert!(reason.contains("cycles"), "{reason}");
                }
            }
        }

        /// Nanoseconds of CPU time of the calling thread.
        fn thread_time() -> u64 {
            let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            stat.split(' ').next().unwrap().parse().unwrap()
        }

        fn run_for(nanos: u64) {
            let begun = thread_time();
            while thread_time() - begun < nanos {}
        }

        /// Uses thread CPU time, which the kernel counts even without hardware counters.
        #[test]
        fn existing_and_new_threads_are_counted() {
            const BUSY: u64 = 20_000_000;
            let (go, begin) = std::sync::mpsc::channel();
            let there = std::thread::spawn(move || {
                begin.recv().unwrap();
                let started = std::thread::spawn(|| run_for(BUSY));
                run_for(BUSY);
                started.join().unwrap();
            });
            let mut tally = match EventCounter::open(perf_event::events::Software::TASK_CLOCK) {
                Ok(tally) => tally,
                Err(error) => return println!("{}", open_error("time", &error)),
            };
            tally.start().unwrap();
            go.send(()).unwrap();
            there.join().unwrap();
            let counted = tally.since_start().unwrap().unwrap();
            // The clocks of the scheduler and of the counters differ slightly.
            assert!(counted > 2 * BUSY * 9 / 10, "{counted}");
        }

        #[test]
        fn multiplexed_counts_are_scaled() {
            let reading = |count, enabled, running| CounterReading {
                count,
                enabled: Duration::from_millis(enabled),
                running: Duration::from_millis(running),
            };
            let begun = reading(1000, 10, 10);
            assert_eq!(scale_multiplexed(begun, reading(1600, 30, 30)), Some(600));
            assert_eq!(scale_multiplexed(begun, reading(1600, 30, 20)), Some(1200));
            assert_eq!(scale_multiplexed(begun, reading(1000, 30, 10)), None);
            assert_eq!(scale_multiplexed(begun, begun), Some(0));
        }

        #[test]
        fn open_errors_suggest_a_fix() {
            for (errno, hint) in [
                (1, "perf_event_paranoid"),
                (13, "perf_event_paranoid"),
                (2, "virtual"),
                (19, "virtual"),
                (38, "virtual"),
                (95, "virtual"),
            ] {
                let message = open_error("cycles", &Error::from_raw_os_error(errno));
                assert!(message.contains("cycles") && message.contains(hint), "{message}");
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::CounterValues;

    /// Placeholder on systems without perf events.
    pub struct Counters(std::convert::Infallible);

    impl Counters {
        /// Returns an error: this system has no perf events.
        pub fn open() -> Result<Self, String> {
            Err("hardware counters require Linux perf events, which this system does not have".into())
        }

        /// Never called.
        pub fn start(&mut self) -> Result<(), String> {
            match self.0 {}
        }

        /// Never called.
        pub fn read(&mut self) -> Result<CounterValues, String> {
            match self.0 {}
        }
    }
}
