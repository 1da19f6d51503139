//! Hooks called between windows of a measurement.

use serde::Serialize;

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
    Isolated,
}

/// State of a device at the end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DeviceState {
    /// Clock of the multiprocessors or cores in MHz.
    pub clock_mhz: Option<u32>,
    /// True if the device was throttled since the last query.
    pub throttled: bool,
}

/// Observer of a measurement. All methods are called between windows, never inside one.
pub trait Observer {
    /// Called before launches of an arm.
    fn before_launch(&mut self, _arm: usize, _phase: Phase) {}
    /// Called after each round with the number of completed rounds.
    fn after_round(&mut self, _rounds: u32) {}
    /// Returns true to stop now with the results so far.
    fn interrupted(&mut self) -> bool {
        false
    }
    /// Number of kernels compiled or tuned in this process so far. A window in which it changes is discarded.
    fn jit_events(&mut self) -> u64 {
        0
    }
    /// Returns true if the last round must be repeated because the device was throttled.
    fn must_repeat_round(&mut self) -> bool {
        false
    }
    /// Returns the state of the device, if available.
    fn state(&mut self, _phase: Phase) -> Option<DeviceState> {
        None
    }
    /// Energy used by the device so far, in joules, if it has a counter.
    fn joules(&mut self) -> Option<f64> {
        None
    }
}

/// Observer with default methods only.
pub struct NullObserver;
impl Observer for NullObserver {}
