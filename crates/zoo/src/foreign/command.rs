//! A command: each launch starts a process and waits for it.

use crate::{Output, Workload, ZooError};
use calorimeter_case::{Axes, excerpt};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// How much of what a failing command wrote is told.
const LAST_WORDS: usize = 400;

/// The words of a command at a size: `{n}` stands for the axis n, where there is one.
pub fn at(words: &[String], axes: &Axes) -> Result<Vec<String>, String> {
    let mut missing = axes.iter().map(|(name, _)| name).filter(|name| {
        let place = format!("{{{name}}}");
        !words.iter().any(|word| word.contains(&place))
    });
    if let Some(name) = missing.next() {
        let command = words.join(" ");
        return Err(format!("{command:?} does not change with the axis {name}; write {{{name}}} where it belongs"));
    }
    let fill = |word: &String| {
        axes.iter().fold(word.clone(), |word, (name, size)| word.replace(&format!("{{{name}}}"), &size.to_string()))
    };
    Ok(words.iter().map(fill).collect())
}

/// A command that is ready to be started. What it writes is thrown away, and it reads nothing.
pub struct Started {
    program: PathBuf,
    arguments: Vec<String>,
    directory: PathBuf,
    line: String,
}

impl Started {
    pub fn new(words: &[String], directory: &str, axes: &Axes) -> Result<Self, ZooError> {
        let words = at(words, axes).map_err(ZooError::Shape)?;
        let line = words.join(" ");
        let mut words = words.into_iter();
        let program = words.next().ok_or_else(|| ZooError::Shape("the command is empty".into()))?;
        // Whether a path such as ./a.out is looked up from here or from there would be up to the system.
        let program = if program.contains('/') { Path::new(directory).join(program) } else { program.into() };
        Ok(Self { program, arguments: words.collect(), directory: directory.into(), line })
    }

    fn command(&self, errors: Stdio) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.directory);
        // Workers have it for kernel compilers of theirs.
        command.env_remove("RUST_MIN_STACK");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        command
    }

    fn run(&self, errors: Stdio) -> Result<ExitStatus, ZooError> {
        let ended = self.command(errors).status();
        ended.map_err(|error| ZooError::Device(format!("{:?} could not be started: {error}", self.line)))
    }

    /// How a command ended that did not end well, with the last that it wrote.
    fn failed(&self, status: ExitStatus, words: &str) -> ZooError {
        let words = words.trim();
        let words =
            if words.is_empty() { String::new() } else { format!("; it wrote: {}", excerpt(words, LAST_WORDS)) };
        ZooError::Device(format!("{:?} ended with {status}{words}", self.line))
    }
}

impl Workload for Started {
    fn launch(&mut self) -> Result<(), ZooError> {
        let status = self.run(Stdio::null())?;
        if status.success() { Ok(()) } else { Err(self.failed(status, "")) }
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    /// A command has none that could be read; its last words are kept in case that it fails.
    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let no_file = |error| ZooError::Device(format!("no temporary file for what a command writes: {error}"));
        // A file and no pipe: what a command leaves running may hold a pipe open.
        let mut errors = tempfile::tempfile().map_err(no_file)?;
        let status = self.run(errors.try_clone().map_err(no_file)?.into())?;
        if status.success() {
            return Ok(Vec::new());
        }
        let end = errors.seek(SeekFrom::End(0)).map_err(no_file)?;
        errors.seek(SeekFrom::Start(end.saturating_sub(4096))).map_err(no_file)?;
        let mut words = Vec::new();
        errors.take(4096).read_to_end(&mut words).map_err(no_file)?;
        Err(self.failed(status, &String::from_utf8_lossy(&words)))
    }

    fn weight_bytes(&self) -> u64 {
        0
    }

    fn is_a_process(&self) -> bool {
        true
    }

    fn kernel(&self) -> Option<String> {
        Some(self.line.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(line: &str) -> Started {
        Started::new(&super::super::words(line).unwrap(), "/", &Axes::default()).unwrap()
    }

    #[test]
    fn how_a_command_failed_is_told_with_its_last_words() {
        let error = started("sh -c 'echo no such grid >&2; exit 3'").outputs().unwrap_err().to_string();
        assert!(error.contains("exit status: 3; it wrote: no such grid"), "{error}");
        let error = started("sh -c 'kill -9 $$'").launch().unwrap_err().to_string();
        assert!(error.contains("signal: 9"), "{error}");
        let error = started("/no/such/program").launch().unwrap_err().to_string();
        assert!(error.starts_with("\"/no/such/program\" could not be started: "), "{error}");
        assert_eq!(started("true").outputs(), Ok(vec![]));
    }

    #[test]
    fn axes_stand_in_braces() {
        let words = |line: &str| super::super::words(line).unwrap();
        let axes = Axes::from([("n", 64)]);
        assert_eq!(at(&words("./a --size={n} {m}"), &axes).unwrap(), ["./a", "--size=64", "{m}"]);
        let error = at(&words("./a"), &axes).unwrap_err();
        assert!(error.contains("write {n} where it belongs"), "{error}");
    }
}
