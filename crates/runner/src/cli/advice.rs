//! Remedies for errors of reading and writing results, in terms of the options of this program.

use super::error::CliError;
use crate::run::RunError;
use calorimeter_compare::CompareError;
use calorimeter_sinks::SinkError;
use calorimeter_sinks::journal::JOURNAL_FILE;
use std::path::{Display, Path};

/// Formats an error as one line: problem, cause and remedy.
pub(super) fn error_line(error: &CliError) -> String {
    match error {
        CliError::Sink(SinkError::JournalMissing { path, .. })
        | CliError::Compare(CompareError::Sink(SinkError::JournalMissing { path, .. })) => {
            format!("no run at {}; runs are in results/, unless --out or output_dir set another folder", run_path(path))
        }
        CliError::Sink(error) | CliError::Run(RunError::Sink(error)) | CliError::Compare(CompareError::Sink(error)) => {
            sink_error_line(error)
        }
        other => other.to_string(),
    }
}

/// Folder or file of a run, given its journal.
fn run_path(journal: &Path) -> Display<'_> {
    let folder = journal.parent().filter(|_| journal.ends_with(JOURNAL_FILE));
    folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(journal).display()
}

/// Formats an error of reading or writing results, with its remedy.
pub(super) fn sink_error_line(error: &SinkError) -> String {
    let remedy = match error {
        SinkError::NotWritable { .. } => "choose another folder with --out",
        // The message already names the cause; the text of the system adds nothing.
        SinkError::DiskFull { .. } => return format!("{error}; free some space and continue with --resume"),
        SinkError::Write { .. } => "the records written so far are intact; continue with --resume",
        SinkError::Read { .. } => "check the path and its permissions",
        SinkError::Format { .. } => "please report this; the journal is intact",
        SinkError::JournalExists { .. } => "continue that run with --resume, or choose another folder with --out",
        // The message already says that the file does not exist.
        SinkError::JournalMissing { .. } => {
            return format!("{error}; check the folder, or start a new run with --out");
        }
        SinkError::OtherConfig { .. } => {
            "use the original configuration and options, or start a new run with another --out"
        }
        SinkError::BadLine { .. } => "the file is damaged or was edited; delete this line to drop its case",
        SinkError::Locked { .. } => "wait for it to end, or choose another folder with --out",
        SinkError::JournalLost { .. } => "do not move or delete it during a run; resume a moved run with --resume",
        SinkError::BadTime { .. } => "correct this line",
        _ => return error.with_causes(),
    };
    format!("{}; {remedy}", error.with_causes())
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
                "cannot write to the directory out: permission denied; choose another folder with --out",
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
            assert_eq!(error_line(&CliError::Run(RunError::Sink(error))), expected);
        }
        let missing = |path: &str| SinkError::JournalMissing { path: path.into(), cause: denied() };
        let reading = error_line(&CliError::Sink(missing("nosuch/journal.jsonl")));
        assert!(reading.starts_with("no run at nosuch; runs are in results/"), "{reading}");
        let resuming = error_line(&CliError::Run(RunError::Sink(missing("nosuch/journal.jsonl"))));
        assert!(resuming.ends_with("start a new run with --out"), "{resuming}");
        assert_eq!(error_line(&CliError::Usage("no file".into())), "no file");
    }
}
