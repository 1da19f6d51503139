//! Closures as work.

use crate::{Failure, Work};
use std::hint::black_box;

/// A closure whose work is complete when it returns.
pub struct Closure<F>(F);

impl<F: FnMut() -> T + Send, T> Closure<F> {
    /// Wraps a closure and hides its result from the optimizer.
    pub fn new(body: F) -> Self {
        Self(body)
    }
}

impl<F: FnMut() -> T + Send, T> Work for Closure<F> {
    fn launch(&mut self) -> Result<(), Failure> {
        black_box((self.0)());
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Asynchronous work as two closures: one enqueues a launch, the other waits until all launches have completed.
///
/// Clocks of a device time it without the synchronization; [`WallClock::slope`](crate::WallClock::slope) subtracts it.
///
/// ```
/// use calorimeter_timing::{AsyncWork, Failure, Options, WallClock, time_one};
/// use std::{hint::black_box, sync::mpsc, thread, time::Duration};
///
/// // A thread with a queue stands for a device.
/// enum Command {
///     Launch,
///     Signal(mpsc::Sender<()>),
/// }
/// let (queue, commands) = mpsc::channel();
/// thread::spawn(move || {
///     for command in commands {
///         match command {
///             Command::Launch => _ = black_box((0..20_000u64).fold(0, |sum, i| sum ^ black_box(i))),
///             Command::Signal(done) => _ = done.send(()),
///         }
///     }
/// });
///
/// let launch = || queue.send(Command::Launch);
/// let synchronize = || -> Result<(), Failure> {
///     let (done, signal) = mpsc::channel();
///     queue.send(Command::Signal(done))?;
///     Ok(signal.recv()?)
/// };
/// let mut work = AsyncWork::new(launch, synchronize);
/// let options = Options::default().with_max_time(Duration::from_millis(50)).with_warm_up(Duration::ZERO);
/// println!("{}", time_one(&mut work, &mut WallClock::slope(), &options)?.time);
/// # Ok::<(), calorimeter_timing::TimingError>(())
/// ```
pub struct AsyncWork<L, S> {
    launch: L,
    synchronize: S,
}

impl<L, S, E, F> AsyncWork<L, S>
where
    L: FnMut() -> Result<(), E> + Send,
    S: FnMut() -> Result<(), F> + Send,
    E: Into<Failure>,
    F: Into<Failure>,
{
    /// Combines the two closures. Each has its own error type.
    pub fn new(launch: L, synchronize: S) -> Self {
        Self { launch, synchronize }
    }
}

impl<L, S, E, F> Work for AsyncWork<L, S>
where
    L: FnMut() -> Result<(), E> + Send,
    S: FnMut() -> Result<(), F> + Send,
    E: Into<Failure>,
    F: Into<Failure>,
{
    fn launch(&mut self) -> Result<(), Failure> {
        (self.launch)().map_err(Into::into)
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        (self.synchronize)().map_err(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stopwatch, WallClock};
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn every_window_ends_synchronized() {
        let (pending, completed) = (AtomicU32::new(0), AtomicU32::new(0));
        let launch = || {
            pending.fetch_add(1, Relaxed);
            Ok::<_, Failure>(())
        };
        let synchronize = || {
            completed.fetch_add(pending.swap(0, Relaxed), Relaxed);
            Ok::<_, Failure>(())
        };
        WallClock::slope().window(&mut AsyncWork::new(launch, synchronize), 5).unwrap();
        assert_eq!((pending.into_inner(), completed.into_inner()), (0, 5));
    }

    #[test]
    fn errors_of_both_closures_are_returned() {
        let mut work = AsyncWork::new(|| Err("launch"), || Err(std::fmt::Error));
        assert_eq!(work.launch().unwrap_err().to_string(), "launch");
        assert!(work.synchronize().unwrap_err().is::<std::fmt::Error>());
    }
}
