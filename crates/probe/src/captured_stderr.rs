//! Capture of standard error while a driver loads, so that its messages are labeled with their origin.

use calorimeter_sinks::terminal::escape;
use rustix::stdio::dup2_stderr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
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
    let _guard = CAPTURE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // If the capture cannot start, the output is printed without prefix.
    let _capture = StderrCapture::start(format!("driver of {kind}: ")).ok();
    load()
}

/// Redirection of standard error to a pipe. Dropping it restores standard error, also during a panic.
struct StderrCapture {
    original: OwnedFd,
    drained: Receiver<()>,
}

impl StderrCapture {
    fn start(mark: String) -> std::io::Result<Self> {
        let original = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 3)?;
        let out = File::from(original.try_clone()?);
        let (from, into) = std::io::pipe()?;
        let (reading, drained) = channel();
        std::thread::Builder::new().spawn(move || {
            forward_lines(from, out, &mark);
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

/// Forwards each non-empty line with a prefix; control characters are escaped.
fn forward_lines(from: impl Read, mut to: impl Write, mark: &str) {
    let mut lines = BufReader::new(from).split(b'\n');
    while let Some(Ok(line)) = lines.next() {
        let line = String::from_utf8_lossy(&line);
        if !line.trim().is_empty() {
            // Write errors are ignored: the pipe must be drained, or the writer blocks forever.
            let _ = to.write_all(format!("{mark}{}\n", escape(line.trim_end())).as_bytes());
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
            let panicked =
                std::panic::catch_unwind(|| with_stderr_prefix("cuda", || std::panic::resume_unwind(Box::new(()))));
            assert!(panicked.is_err());
            write("after a panic\n");
            return;
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "--nocapture", "captured_stderr::tests::driver_output_is_prefixed"]);
        let output = child.env(PLAY_DRIVER, "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            "before\ndriver of vulkan: error: XDG_RUNTIME_DIR is invalid\ndriver of vulkan: \\u001b[2Jhalf a line\nafter\nafter a panic\n"
        );
    }
}
