//! Hooks called between windows of a measurement.

/// Phase of the measurement of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Calibration of the launches per window.
    Calibrate,
    /// Launches until the times reach a plateau.
    WarmUp,
    /// Timing of a window, interleaved with other arms.
    Measure,
    /// Timing of consecutive windows without other arms in between.
    Alone,
}

/// State of a device at the end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    /// Clock of the multiprocessors or cores in MHz.
    pub clock_mhz: Option<u32>,
    /// True if the device was throttled since the last query.
    pub held_back: bool,
}

/// Observer of a measurement. All methods are called between windows, never inside one.
pub trait Observer {
    /// Called before launches of an arm.
    fn touch(&mut self, _arm: usize, _phase: Phase) {}
    /// Called after each round with the number of completed rounds.
    fn round(&mut self, _rounds: u32) {}
    /// Returns true to stop now with the results so far.
    fn interrupted(&mut self) -> bool {
        false
    }
    /// Number of kernels compiled or tuned in this process so far. A window in which it changes is discarded.
    fn disturbances(&mut self) -> u64 {
        0
    }
    /// Returns true if the last round must be repeated because the device was throttled.
    fn spoilt(&mut self) -> bool {
        false
    }
    /// Returns the state of the device, if available.
    fn state(&mut self, _phase: Phase) -> Option<State> {
        None
    }
    /// Energy used by the device so far, in joules, if it has a counter.
    fn joules(&mut self) -> Option<f64> {
        None
    }
}

/// Observer with default methods only.
pub struct Quiet;
impl Observer for Quiet {}
