//! Clock of another process.

use crate::{Failure, LaunchSpan, Overhead, Reading, Stopwatch, Work};

/// Clock of the process that runs the launches: see [`Work::time_remotely`]. The messages between the processes are
/// outside the windows.
pub struct RemoteClock {
    name: &'static str,
}

impl RemoteClock {
    /// Clock with a name that the record states.
    pub fn new(name: &'static str) -> Self {
        Self { name }
    }

    fn nanos(work: &mut dyn Work, launches: u32) -> Result<u64, Failure> {
        work.synchronize()?;
        Ok(work.time_remotely(launches)?.ok_or("the work runs in this process and has no other clock")?)
    }
}

impl Stopwatch for RemoteClock {
    fn name(&self) -> &'static str {
        self.name
    }

    fn overhead(&self) -> Overhead {
        Overhead::Excluded
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        Ok(Reading::Ready(Self::nanos(work, launches)?))
    }

    /// Starts are sums of durations, because the gaps between messages are not part of the work.
    fn launch_spans(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<LaunchSpan>, Failure> {
        let mut start = 0;
        let span = |_| {
            let host = (start, Self::nanos(work, 1)?);
            start += host.1;
            Ok(LaunchSpan { host, device: Some(host) })
        };
        (0..launches).map(span).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of 100 ns per launch in another process.
    struct Remote {
        pending: u32,
    }

    impl Work for Remote {
        fn launch(&mut self) -> Result<(), Failure> {
            self.pending += 1;
            Ok(())
        }

        fn synchronize(&mut self) -> Result<(), Failure> {
            self.pending = 0;
            Ok(())
        }

        fn time_remotely(&mut self, launches: u32) -> Result<Option<u64>, Failure> {
            assert_eq!(self.pending, 0, "earlier launches must not fall into the window");
            Ok(Some(u64::from(launches) * 100))
        }
    }

    #[test]
    fn window_has_the_time_of_the_other_process() {
        let (mut clock, mut work) = (RemoteClock::new("remote"), Remote { pending: 0 });
        work.launch().unwrap();
        assert_eq!(clock.window(&mut work, 7).unwrap().resolve().unwrap(), 700);
        let spans = clock.launch_spans(&mut work, 2).unwrap();
        assert_eq!(spans.iter().map(|span| span.host).collect::<Vec<_>>(), [(0, 100), (100, 100)]);
    }

    #[test]
    fn work_of_this_process_is_an_error() {
        struct Local;
        impl Work for Local {
            fn launch(&mut self) -> Result<(), Failure> {
                Ok(())
            }
            fn synchronize(&mut self) -> Result<(), Failure> {
                Ok(())
            }
        }
        assert!(RemoteClock::new("remote").window(&mut Local, 1).is_err());
    }
}
