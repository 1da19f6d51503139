//! Capture of standard error while a driver loads, so that its messages are labeled with their origin.

use calorimeter_sinks::log_line;
use calorimeter_sinks::terminal::escape;
use rustix::stdio::dup2_stderr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Serializes captures: file descriptor 2 can be redirected only once at a time.
static CAPTURE_LOCK: Mutex<()> = Mutex::new(());
/// Timeout for the remaining output: a process started by the driver may keep the pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs `load`, which loads the driver of a device kind, and prefixes each line it writes to standard error with that
/// kind. Lines are forwarded as they arrive.
pub fn with_stderr_prefix<T>(kind: &str, load: impl FnOnce() -> T) -> T {
    let mark = format!("driver of {kind}: ");
    capture(load, move |original, line| {
        // Write errors are ignored: the pipe must be drained, or the writer blocks forever.
        let _ = original.write_all(format!("{mark}{line}\n").as_bytes());
    })
}

/// Runs `load` and returns the lines it writes to standard error. They are printed only if `load` panics.
pub(crate) fn capture_stderr<T>(load: impl FnOnce() -> T) -> (T, Vec<String>) {
    let (sender, lines) = channel();
    let result = capture(|| catch_unwind(AssertUnwindSafe(load)), move |_, line| drop(sender.send(line)));
    match result {
        Ok(result) => (result, lines.try_iter().collect()),
        Err(panic) => {
            // Includes the message of the panic.
            lines.try_iter().for_each(|line| log_line!("{line}"));
            resume_unwind(panic)
        }
    }
}

/// Runs `load` and passes each line it writes to standard error to `on_line`, with the original standard error.
fn capture<T>(load: impl FnOnce() -> T, on_line: impl FnMut(&mut File, String) + Send + 'static) -> T {
    let _guard = CAPTURE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // If the capture cannot start, the output is printed as it is.
    let _capture = StderrCapture::start(on_line).ok();
    load()
}

/// Redirection of standard error to a pipe. Dropping it restores standard error, also during a panic.
struct StderrCapture {
    original: OwnedFd,
    drained: Receiver<()>,
}

impl StderrCapture {
    fn start(mut on_line: impl FnMut(&mut File, String) + Send + 'static) -> std::io::Result<Self> {
        let original = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 3)?;
        let mut out = File::from(original.try_clone()?);
        let (from, into) = std::io::pipe()?;
        let (reading, drained) = channel();
        std::thread::Builder::new().spawn(move || {
            read_lines(from, |line| on_line(&mut out, line));
            drop(reading);
        })?;
        dup2_stderr(into)?;
        Ok(Self { original, drained })
    }
}

impl Drop for StderrCapture {
    fn drop(&mut self) {
        // Restoring the descriptor closes the write end of the pipe, so that the reader reaches its end.
        if dup2_stderr(&self.original).is_ok() {
            let _ = self.drained.recv_timeout(DRAIN_TIMEOUT);
        }
    }
}

/// Passes on each non-empty line; control characters are escaped.
fn read_lines(from: impl Read, mut on_line: impl FnMut(String)) {
    let mut lines = BufReader::new(from).split(b'\n');
    while let Some(Ok(line)) = lines.next() {
        let line = String::from_utf8_lossy(&line);
        if !line.trim().is_empty() {
            on_line(escape(line.trim_end()).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set in the child process that acts as the driver: tests of one process share standard error.
    const PLAY_DRIVER: &str = "CALORIMETER_TEST_PLAYS_DRIVER";

    fn write(text: &str) {
        rustix::io::write(std::io::stderr(), text.as_bytes()).unwrap();
    }

    #[test]
    fn driver_output_is_prefixed() {
        if std::env::var_os(PLAY_DRIVER).is_some() {
            write("before\n");
            assert_eq!(
                with_stderr_prefix("vulkan", || {
                    write("error: XDG_RUNTIME_DIR is invalid\n\n\x1b[2Jhalf a line");
                    7
                }),
                7
            );
            write("after\n");
            let captured = capture_stderr(|| write("captured\n\nin two lines\n"));
            assert_eq!(captured.1, ["captured", "in two lines"]);
            let panicked = catch_unwind(|| with_stderr_prefix("cuda", || resume_unwind(Box::new(()))));
            assert!(panicked.is_err());
            write("after a panic\n");
            let panicked = catch_unwind(|| {
                capture_stderr::<()>(|| {
                    write("before the next panic\n");
                    resume_unwind(Box::new(()))
                })
            });
            assert!(panicked.is_err());
            return;
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "--nocapture", "captured_stderr::tests::driver_output_is_prefixed"]);
        let output = child.env(PLAY_DRIVER, "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            "before\ndriver of vulkan: error: XDG_RUNTIME_DIR is invalid\ndriver of vulkan: \\u001b[2Jhalf a line\nafter\nafter a panic\nbefore the next panic\n"
        );
    }
}
