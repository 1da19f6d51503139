//! Clock of another process.

use crate::{
    ClockResolution, EndToEndClock, EnqueueClock, Failure, KernelTracing, LaunchSpan, Overhead, Reading, Stopwatch,
    WallClock, Work,
};
use calorimeter_case::Clock;
use std::time::Duration;

/// Clock of the process that runs the launches: see [`Work::time_remotely`]. The messages between the processes are
/// outside the windows.
pub struct RemoteClock {
    name: &'static str,
    clock: Clock,
    kind: Kind,
}

/// Property of a clock that this process must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Host clock.
    Host,
    /// Events on a stream.
    Events,
    /// Events around replays of a graph of this many launches.
    Graph(u32),
    /// Records of each kernel.
    Kernels,
}

impl RemoteClock {
    /// Clock of a kind by its name, which the record states: the name of the stopwatch that would measure the same in
    /// this process. A graph holds one launch per buffer set. `None` for an unknown name.
    pub fn new(name: &str, clock: Clock, sets: u32) -> Option<Self> {
        let known = [
            (WallClock::synchronous().name(), Clock::Device, Kind::Host),
            ("cupti", Clock::Device, Kind::Kernels),
            ("cuda-events", Clock::Device, Kind::Events),
            ("cuda-graph", Clock::Graph, Kind::Graph(sets.max(1))),
            (EndToEndClock.name(), Clock::Waiting, Kind::Host),
            (EnqueueClock.name(), Clock::Enqueuing, Kind::Host),
        ];
        let &(name, clock, kind) = known.iter().find(|known| (known.0, known.1) == (name, clock))?;
        Some(Self { name, clock, kind })
    }

    /// True for events in place of records of kernels.
    pub fn is_fallback(&self) -> bool {
        self.kind == Kind::Events
    }

    fn nanos(work: &mut dyn Work, launches: u32, clock: Clock) -> Result<u64, Failure> {
        work.synchronize()?;
        let nanos = work.time_remotely(launches, clock)?;
        Ok(nanos.ok_or("the work runs in this process and has no other clock")?)
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
        Ok(Reading::Ready(Self::nanos(work, launches, self.clock)?))
    }

    /// Runs without records of kernels, as the clock of this process does.
    fn load(&mut self, work: &mut dyn Work, launches: u32) -> Result<(), Failure> {
        if self.kind != Kind::Kernels {
            return self.window(work, launches)?.resolve().map(|_| ());
        }
        (0..launches).try_for_each(|_| work.launch())?;
        work.synchronize()
    }

    fn includes_gaps(&self) -> bool {
        matches!(self.kind, Kind::Events | Kind::Graph(_))
    }

    fn launch_multiple(&self) -> u32 {
        match self.kind {
            Kind::Graph(launches) => launches,
            _ => 1,
        }
    }

    /// Enabling, disabling and reading records of kernels takes milliseconds. Events and graphs contain the time in
    /// which the device waits for the first launch, up to 40 µs.
    fn min_window(&self) -> Duration {
        match self.kind {
            Kind::Host => Duration::ZERO,
            Kind::Kernels | Kind::Events | Kind::Graph(_) => Duration::from_millis(20),
        }
    }

    fn resolution(&mut self, work: &mut dyn Work) -> Result<ClockResolution, Failure> {
        const EMPTY_WINDOWS: usize = 64;
        let mut window = |launches| Self::nanos(work, launches, self.clock);
        if self.kind == Kind::Kernels {
            return ClockResolution::from_launches(window);
        }
        let empty: Result<Vec<u64>, Failure> = (0..EMPTY_WINDOWS).map(|_| window(0)).collect();
        Ok(ClockResolution::from_empty_windows(empty?))
    }

    fn kernel_tracing(&mut self) -> Option<&mut dyn KernelTracing> {
        (self.kind == Kind::Kernels).then_some(self as _)
    }

    /// Starts are sums of durations, because the gaps between messages are not part of the work.
    fn launch_spans(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<LaunchSpan>, Failure> {
        let mut start = 0;
        let span = |_| {
            let host = (start, Self::nanos(work, 1, Clock::Waiting)?);
            start += host.1;
            Ok(LaunchSpan { host, device: (self.kind == Kind::Host).then_some(host) })
        };
        (0..launches).map(span).collect()
    }
}

impl KernelTracing for RemoteClock {
    fn kernel_calls(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<(String, u64)>, Failure> {
        work.synchronize()?;
        work.trace_remotely(launches)
    }

    /// The other process reports no spans.
    fn window_spans(&self) -> &[u64] {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of 100 ns per launch in another process; the clock of each request, and launches that are not timed.
    #[derive(Default)]
    struct Remote {
        pending: u32,
        untimed: u32,
        clocks: Vec<Clock>,
    }

    impl Work for Remote {
        fn launch(&mut self) -> Result<(), Failure> {
            self.pending += 1;
            Ok(())
        }

        fn synchronize(&mut self) -> Result<(), Failure> {
            self.untimed += std::mem::take(&mut self.pending);
            Ok(())
        }

        fn time_remotely(&mut self, launches: u32, clock: Clock) -> Result<Option<u64>, Failure> {
            assert_eq!(self.pending, 0, "earlier launches must not fall into the window");
            self.clocks.push(clock);
            Ok(Some(u64::from(launches) * 100))
        }

        fn trace_remotely(&mut self, launches: u32) -> Result<Vec<(String, u64)>, Failure> {
            Ok(vec![("softmax".to_owned(), launches.into())])
        }
    }

    #[test]
    fn window_has_the_time_of_the_other_process() {
        let (mut clock, mut work) = (RemoteClock::new("wall", Clock::Device, 2).unwrap(), Remote::default());
        work.launch().unwrap();
        assert_eq!(clock.window(&mut work, 7).unwrap().resolve().unwrap(), 700);
        let spans = clock.launch_spans(&mut work, 2).unwrap();
        assert_eq!(spans.iter().map(|span| span.host).collect::<Vec<_>>(), [(0, 100), (100, 100)]);
        assert_eq!(work.clocks, [Clock::Device, Clock::Waiting, Clock::Waiting]);
    }

    #[test]
    fn clocks_have_the_properties_of_their_kind() {
        let mut work = Remote::default();
        let mut kernels = RemoteClock::new("cupti", Clock::Device, 3).unwrap();
        kernels.load(&mut work, 5).unwrap();
        assert_eq!((work.untimed, work.clocks.len()), (5, 0));
        assert_eq!(kernels.resolution(&mut work).unwrap(), ClockResolution { step_ns: 100, empty_ns: 0 });
        assert!(kernels.min_window() > Duration::ZERO && !kernels.includes_gaps() && !kernels.is_fallback());
        assert!(RemoteClock::new("cuda-events", Clock::Device, 3).unwrap().is_fallback());
        let traced = kernels.kernel_tracing().unwrap().kernel_calls(&mut work, 2).unwrap();
        assert_eq!(traced, [("softmax".to_owned(), 2)]);
        let mut graph = RemoteClock::new("cuda-graph", Clock::Graph, 3).unwrap();
        assert!(graph.kernel_tracing().is_none());
        assert_eq!((graph.launch_multiple(), graph.includes_gaps()), (3, true));
        for (name, clock) in [("sundial", Clock::Device), ("cupti", Clock::Waiting), ("wall", Clock::Graph)] {
            assert!(RemoteClock::new(name, clock, 1).is_none(), "{name}");
        }
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
        assert!(RemoteClock::new("wall", Clock::Device, 1).unwrap().window(&mut Local, 1).is_err());
    }
}
