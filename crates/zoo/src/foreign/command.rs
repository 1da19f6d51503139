//! Foreign commands: each launch starts a process and waits for it.

use crate::{Output, Workload, ZooError};
use calorimeter_case::{Axes, excerpt};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Maximum characters of stderr in an error message.
const MAX_STDERR_CHARS: usize = 400;

/// Replaces `{n}` by the size of axis n in the words of a command; an error if an axis does not occur.
pub(super) fn substitute_axes(words: &[String], axes: &Axes) -> Result<Vec<String>, String> {
    let mut missing = axes.iter().map(|(name, _)| name).filter(|name| {
        let place = format!("{{{name}}}");
        !words.iter().any(|word| word.contains(&place))
    });
    if let Some(name) = missing.next() {
        let command = words.join(" ");
        return Err(format!("{command:?} does not use the axis {name}; write {{{name}}} where its size belongs"));
    }
    let fill = |word: &String| {
        axes.iter().fold(word.clone(), |word, (name, size)| word.replace(&format!("{{{name}}}"), &size.to_string()))
    };
    Ok(words.iter().map(fill).collect())
}

/// Command ready to be started. Its output is discarded and its input is empty.
pub(super) struct CommandWorkload {
    program: PathBuf,
    arguments: Vec<String>,
    directory: PathBuf,
    line: String,
}

impl CommandWorkload {
    pub(super) fn new(words: &[String], directory: &str, axes: &Axes) -> Result<Self, ZooError> {
        let words = substitute_axes(words, axes).map_err(ZooError::Shape)?;
        let line = words.join(" ");
        let mut words = words.into_iter();
        let program = words.next().ok_or_else(|| ZooError::Shape("empty command".into()))?;
        // The system would resolve a relative path such as ./a.out before or after the change of directory.
        let program = if program.contains('/') { Path::new(directory).join(program) } else { program.into() };
        Ok(Self { program, arguments: words.collect(), directory: directory.into(), line })
    }

    fn command(&self, errors: Stdio) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.directory);
        // Set for kernel compilers in workers; commands must not inherit it.
        command.env_remove("RUST_MIN_STACK");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        command
    }

    fn run(&self, errors: Stdio) -> Result<ExitStatus, ZooError> {
        let ended = self.command(errors).status();
        ended.map_err(|error| ZooError::Device(format!("cannot start {:?}: {error}", self.line)))
    }

    /// Error of a command that failed, with the end of its stderr.
    fn failure(&self, status: ExitStatus, words: &str) -> ZooError {
        let words = words.trim();
        let words =
            if words.is_empty() { String::new() } else { format!("; stderr: {}", excerpt(words, MAX_STDERR_CHARS)) };
        ZooError::Device(format!("{:?} ended with {status}{words}", self.line))
    }
}

impl Workload for CommandWorkload {
    fn launch(&mut self) -> Result<(), ZooError> {
        let status = self.run(Stdio::null())?;
        if status.success() { Ok(()) } else { Err(self.failure(status, "")) }
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    /// Runs the command once and captures its stderr for the error message. A command has no readable outputs.
    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let no_file =
            |error| ZooError::Device(format!("cannot create a temporary file for the output of a command: {error}"));
        // A file instead of a pipe: a background process of the command could hold a pipe open.
        let mut errors = tempfile::tempfile().map_err(no_file)?;
        let status = self.run(errors.try_clone().map_err(no_file)?.into())?;
        if status.success() {
            return Ok(Vec::new());
        }
        let end = errors.seek(SeekFrom::End(0)).map_err(no_file)?;
        errors.seek(SeekFrom::Start(end.saturating_sub(4096))).map_err(no_file)?;
        let mut words = Vec::new();
        errors.take(4096).read_to_end(&mut words).map_err(no_file)?;
        Err(self.failure(status, &String::from_utf8_lossy(&words)))
    }

    fn is_process(&self) -> bool {
        true
    }

    fn kernel(&self) -> Option<String> {
        Some(self.line.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(line: &str) -> CommandWorkload {
        CommandWorkload::new(&super::super::split_command(line).unwrap(), "/", &Axes::default()).unwrap()
    }

    #[test]
    fn failed_commands_report_status_and_stderr() {
        let error = started("sh -c 'echo no such grid >&2; exit 3'").outputs().unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("no such grid"), "{error}");
        let error = started("sh -c 'kill -9 $$'").launch().unwrap_err().to_string();
        assert!(error.contains("signal: 9"), "{error}");
        let error = started("/no/such/program").launch().unwrap_err().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
        assert_eq!(started("true").outputs(), Ok(vec![]));
    }

    #[test]
    fn axes_are_substituted_in_braces() {
        let words = |line: &str| super::super::split_command(line).unwrap();
        let axes = Axes::from([("n", 64)]);
        assert_eq!(substitute_axes(&words("./a --size={n} {m}"), &axes).unwrap(), ["./a", "--size=64", "{m}"]);
        let error = substitute_axes(&words("./a"), &axes).unwrap_err();
        assert!(error.contains("{n}"), "{error}");
    }
}
