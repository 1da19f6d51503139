//! What can go wrong while measuring.

/// Whatever a work or a clock reports when it cannot go on.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why an arm has no measurement.
#[derive(Debug, thiserror::Error)]
pub enum TimingError {
    /// The work or its clock failed; the text is theirs.
    #[error("{0}")]
    Failed(Failure),
    /// A kernel was compiled or tuned inside a window, and again after the arm was primed once more.
    #[error(
        "{events} kernels were compiled or tuned inside timed windows, also after priming again; the time would include them"
    )]
    NotSilent {
        /// Compile and tune events seen inside the last discarded window.
        events: u64,
    },
    /// A window that was expected to take time took none.
    #[error("{launches} launches took no time on the clock `{clock}`; nothing ran, or the clock is stuck")]
    NoTime {
        /// The stopwatch's name.
        clock: &'static str,
        /// How many launches the last window held.
        launches: u32,
    },
    /// The run was interrupted before the arm had a result.
    #[error("interrupted")]
    Interrupted,
}

impl From<Failure> for TimingError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
