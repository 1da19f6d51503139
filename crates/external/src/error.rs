//! Errors of external programs.

use calorimeter_zoo::ZooError;

/// Error of an external program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalError {
    /// The program cannot be started.
    #[error("cannot start {program}: {error}")]
    Start {
        /// Command line.
        program: String,
        /// Cause.
        error: std::io::Error,
    },
    /// The program exited or closed its pipe.
    #[error("{program} {exit}{}", stderr_suffix(.stderr))]
    Exited {
        /// Command line.
        program: String,
        /// Description of the exit.
        exit: String,
        /// Last lines of standard error.
        stderr: String,
    },
    /// The program reported an error.
    #[error("{0}")]
    Reported(String),
    /// The program reported that it does not support a case.
    #[error("{0}")]
    Unsupported(String),
    /// The program violated the protocol.
    #[error("{program} violated the protocol of external workers: {reason}")]
    Protocol {
        /// Command line.
        program: String,
        /// Violation.
        reason: String,
    },
    /// The program offers an implementation that cannot be registered.
    #[error("{program}: {reason}")]
    Registration {
        /// Command line.
        program: String,
        /// Reason.
        reason: String,
    },
    /// Error of the files that hold inputs and outputs.
    #[error("cannot share inputs and outputs with {program}: {error}")]
    Sharing {
        /// Command line.
        program: String,
        /// Cause.
        error: std::io::Error,
    },
}

fn stderr_suffix(stderr: &str) -> String {
    match stderr {
        "" => String::new(),
        missing if missing.contains("No module named calorimeter") => {
            format!(": {missing}; install it from the folder integrations/python of the repository of calorimeter")
        }
        other => format!(": {other}"),
    }
}

impl From<ExternalError> for ZooError {
    fn from(error: ExternalError) -> Self {
        match error {
            ExternalError::Unsupported(reason) => Self::Unsupported(reason),
            other => Self::Device(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_package_is_explained() {
        let exited = |stderr: &str| {
            let (program, exit) = ("`python3`".to_owned(), "ended with exit status: 1".to_owned());
            ExternalError::Exited { program, exit, stderr: stderr.to_owned() }.to_string()
        };
        assert!(exited("python3: No module named calorimeter").contains("integrations/python"));
        assert_eq!(exited("killed"), "`python3` ended with exit status: 1: killed");
    }
}
