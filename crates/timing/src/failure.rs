//! Errors of a measurement.

/// Error of a work or a clock.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Reason why an arm has no measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// Error of the work or its clock, with its text.
    #[error("{0}")]
    Failed(Failure),
    /// A kernel was compiled or tuned inside a window, even after the arm was primed again.
    #[error(
        "{events} kernels were compiled or tuned inside timed windows, even after priming again; the time \
         would include them"
    )]
    CompiledInWindow {
        /// Compile and tune events in the last discarded window.
        events: u64,
    },
    /// A window with launches took no time.
    #[error("{launches} launches took no time on the clock `{clock}`: nothing ran, or the clock does not advance")]
    NoTime {
        /// Name of the stopwatch.
        clock: &'static str,
        /// Launches of the last window.
        launches: u32,
    },
    /// The baseline of an arm does not exist or is the arm itself; nothing was launched.
    #[error("arm {arm} is compared with arm {baseline}, which is {}", if arm == baseline { "itself".to_owned() } else { format!("not among the {arms} arms, counted from 0") })]
    InvalidBaseline {
        /// Arm, counted from 0.
        arm: usize,
        /// Requested baseline.
        baseline: usize,
        /// Number of arms.
        arms: usize,
    },
    /// Invalid option; nothing was launched.
    #[error("invalid option {option}: {value}; expected zero or more")]
    InvalidOption {
        /// Name of the option.
        option: &'static str,
        /// Invalid value.
        value: f64,
    },
    /// Two arms were measured, but no pair of their windows has a ratio.
    #[error("no round has a time of both arms: the launches are too short for the clock")]
    NoRatio,
    /// The run was interrupted before the arm had a result.
    #[error("interrupted")]
    Interrupted,
}

impl From<Failure> for TimingError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
