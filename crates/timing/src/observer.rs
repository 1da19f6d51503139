//! What is told of a measurement while it goes on, and what it asks.

/// What is happening to an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Finding out how many launches a window holds.
    Calibrate,
    /// Launching until the times agree.
    WarmUp,
    /// Timing a window in turns with the other arms.
    Measure,
    /// Timing windows one after another with no other arm between them.
    Alone,
}

/// What a device said of itself at the end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    /// The clock of its processors in MHz.
    pub clock_mhz: Option<u32>,
    /// Whether power or heat held the clock back since this was last asked.
    pub held_back: bool,
}

/// Watches a measurement from outside; every method is called between windows, never inside one.
pub trait Observer {
    /// The arm is about to be launched.
    fn touch(&mut self, _arm: usize, _phase: Phase) {}
    /// Rounds done so far.
    fn round(&mut self, _rounds: u32) {}
    /// Whether to stop now and keep what there is.
    fn interrupted(&mut self) -> bool {
        false
    }
    /// Kernels compiled or tuned in this process so far: a window in which the count moves is void.
    fn disturbances(&mut self) -> u64 {
        0
    }
    /// Whether something held the device back in the round that has just been measured, so that it should be repeated.
    fn spoilt(&mut self) -> bool {
        false
    }
    /// What the device says of itself, where it says anything.
    fn state(&mut self, _phase: Phase) -> Option<State> {
        None
    }
    /// Energy that the device has used so far, in joules, where it counts.
    fn joules(&mut self) -> Option<f64> {
        None
    }
}

/// Watches nothing.
pub struct Quiet;
impl Observer for Quiet {}
