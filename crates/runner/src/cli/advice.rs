//! The ways out of what goes wrong when results are stored: the options of this program that lead on.

use super::error::CliError;
use crate::compare::CompareError;
use crate::run::RunError;
use calorimeter_sinks::SinkError;

/// An error as one line: what is wrong, why, and what to do about it.
pub fn line(error: &CliError) -> String {
    match error {
        CliError::Sink(error) | CliError::Run(RunError::Sink(error)) | CliError::Compare(CompareError::Sink(error)) => {
            stored(error)
        }
        other => other.to_string(),
    }
}

/// The same of results that could not be stored.
pub fn stored(error: &SinkError) -> String {
    let way_out = match error {
        SinkError::NotWritable { .. } => "choose another one with --out",
        // Why it is full is known: the system's words add nothing.
        SinkError::DiskFull { .. } => return format!("{error}; free some space and continue with --resume"),
        SinkError::Write { .. } => "what was written before is intact and can be continued with --resume",
        SinkError::Read { .. } => "check that the path and its permissions are right",
        SinkError::Format { .. } => "please report this, the journal is unharmed",
        SinkError::JournalExists { .. } => "continue that run with --resume, or choose another folder with --out",
        // That there is no such file has been said.
        SinkError::JournalMissing { .. } => {
            return format!("{error}; check the folder, or start a new run with --out");
        }
        SinkError::OtherConfig { .. } => {
            "give the same configuration and options as then, or start a new run with another --out"
        }
        SinkError::BadLine { .. } => "the file was damaged or edited: delete this line to drop its case",
        SinkError::Locked { .. } => "wait for it to end, or choose another folder with --out",
        SinkError::JournalLost { .. } => {
            "leave it alone while a run writes there; one that was moved goes on with --resume"
        }
        SinkError::BadTime { .. } => "mend that line",
        _ => return error.with_causes(),
    };
    format!("{}; {way_out}", error.with_causes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn the_system_is_quoted_once_and_the_way_out_comes_last() {
        let denied = || io::Error::other("permission denied");
        let path = || "out/journal.jsonl".into();
        for (error, expected) in [
            (
                SinkError::NotWritable { dir: "out".into(), cause: denied() },
                "cannot write in the folder out: permission denied; choose another one with --out",
            ),
            (
                SinkError::DiskFull { path: path(), cause: denied() },
                "cannot write out/journal.jsonl: the disk or the quota is full; free some space and continue with --resume",
            ),
            (
                SinkError::JournalExists { path: path() },
                "out/journal.jsonl already exists; continue that run with --resume, or choose another folder with --out",
            ),
        ] {
            assert_eq!(line(&CliError::Run(RunError::Sink(error))), expected);
        }
        assert_eq!(line(&CliError::Usage("no file".into())), "no file");
    }
}
