//! What drivers write to standard error by themselves, told apart from what this program says.

use rustix::stdio::dup2_stderr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Only one thing at a time stands in the place of standard error.
static PLACE: Mutex<()> = Mutex::new(());
/// How long the last words are waited for: a process that a driver has started may hold the pipe open.
const PATIENCE: Duration = Duration::from_secs(1);

/// Does something that loads the driver of a kind of device. What is written meanwhile comes out line by line, as it comes, and
/// says whose it is.
pub fn marked<T>(kind: &str, load: impl FnOnce() -> T) -> T {
    let _alone = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    // Where it cannot be told apart it is at least not lost.
    let _aside = Aside::step(format!("driver of {kind}: ")).ok();
    load()
}

/// Standard error leads into a pipe as long as this lives, also where a panic ends it.
struct Aside {
    own: OwnedFd,
    drained: Receiver<()>,
}

impl Aside {
    fn step(mark: String) -> std::io::Result<Self> {
        let own = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 3)?;
        let out = File::from(own.try_clone()?);
        let (from, into) = std::io::pipe()?;
        let (reading, drained) = channel();
        std::thread::Builder::new().spawn(move || {
            pass_on(from, out, &mark);
            drop(reading);
        })?;
        dup2_stderr(into)?;
        Ok(Self { own, drained })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // The pipe's other end closes with it, and then all of it is read.
        if dup2_stderr(&self.own).is_ok() {
            let _ = self.drained.recv_timeout(PATIENCE);
        }
    }
}

/// Writes every line that has something in it with a mark before it, and without what a terminal would obey.
fn pass_on(from: impl Read, mut to: impl Write, mark: &str) {
    let mut lines = BufReader::new(from).split(b'\n');
    while let Some(Ok(line)) = lines.next() {
        let line = String::from_utf8_lossy(&line);
        if !line.trim().is_empty() {
            // Read to its end all the same, or whoever writes would wait for ever.
            let _ = to.write_all(format!("{mark}{}\n", crate::shown::shown(line.trim_end())).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set for the process that plays the driver: the tests of this one share their standard error.
    const PLAYS: &str = "CALORIMETER_TEST_PLAYS_DRIVER";

    fn write(text: &str) {
        rustix::io::write(std::io::stderr(), text.as_bytes()).unwrap();
    }

    #[test]
    fn what_a_driver_writes_is_marked_and_what_we_write_is_not() {
        if std::env::var_os(PLAYS).is_some() {
            write("before\n");
            assert_eq!(
                marked("vulkan", || {
                    write("error: XDG_RUNTIME_DIR is invalid\n\n\x1b[2Jhalf a line");
                    7
                }),
                7
            );
            write("after\n");
            let panicked = std::panic::catch_unwind(|| marked("cuda", || std::panic::resume_unwind(Box::new(()))));
            assert!(panicked.is_err());
            write("after a panic\n");
            return;
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([
            "--exact",
            "--nocapture",
            "chatter::tests::what_a_driver_writes_is_marked_and_what_we_write_is_not",
        ]);
        let output = child.env(PLAYS, "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            "before\ndriver of vulkan: error: XDG_RUNTIME_DIR is invalid\ndriver of vulkan: \\u001b[2Jhalf a line\nafter\nafter a panic\n"
        );
    }
}
