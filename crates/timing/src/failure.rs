//! What can go wrong while measuring.

/// Whatever a work or a clock reports when it cannot go on.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Why an arm has no measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    /// An arm is compared with one that is not there, or with itself; nothing was launched.
    #[error("arm {arm} is compared with arm {baseline}, which is {}", if arm == baseline { "itself".to_owned() } else { format!("not among the {arms} arms, counted from 0") })]
    NoSuchBaseline {
        /// The arm, counted from 0.
        arm: usize,
        /// What it should be compared with.
        baseline: usize,
        /// How many arms there are.
        arms: usize,
    },
    /// An option is no number that can be measured by; nothing was launched.
    #[error("the option {option} is {value}; it must be zero or more")]
    BadOption {
        /// The option.
        option: &'static str,
        /// Its value.
        value: f64,
    },
    /// Two arms were measured and no pair of their windows has a ratio.
    #[error("no round has a time of both arms to divide; the launches are too short for the clock")]
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
