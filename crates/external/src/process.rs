//! Running program, connected by pipes.

use crate::ExternalError;
use crate::protocol::{Offer, Reply, Request, VERSION};
use calorimeter_case::excerpt;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

/// Bytes of standard error that are searched for the last lines.
const STDERR_TAIL_BYTES: u64 = 4096;
/// Timeout for a program to exit by itself after the program closed a pipe.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum characters of standard error in an error message.
const MAX_STDERR_CHARS: usize = 600;
/// Environment variable with the name of the implementation whose cases the program opens. A program that only lists its
/// implementations does not need to load libraries.
const IMPLEMENTATION: &str = "CALORIMETER_IMPLEMENTATION";

/// Command line of a program that speaks the [protocol](crate::protocol).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExternalProgram(
    /// Program and arguments.
    pub Vec<String>,
);

impl ExternalProgram {
    /// Python program that serves the implementations of a source: a file such as `my_kernels.py`, or the name of a
    /// library that the Python package `calorimeter` supports, such as `numpy`.
    pub fn python(source: &str) -> Self {
        Self(["python3", "-m", "calorimeter", "worker", source].map(str::to_owned).to_vec())
    }
}

impl fmt::Display for ExternalProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.join(" "))
    }
}

/// Running program. Dropping a `Process` kills the program.
pub(crate) struct Process {
    program: ExternalProgram,
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    /// Receives standard error.
    errors: File,
    next_id: u64,
    /// True after the first request and reply.
    is_greeted: bool,
}

/// Process shared by the open cases of an implementation.
pub(crate) type SharedProcess = Arc<Mutex<Process>>;

/// Running processes by program and implementation.
static RUNNING: LazyLock<Mutex<HashMap<(ExternalProgram, String), SharedProcess>>> = LazyLock::new(Mutex::default);

/// Locks a process. A panic of the thread that held the lock leaves at most one unread reply, which fails the next
/// request.
pub(crate) fn lock(process: &SharedProcess) -> MutexGuard<'_, Process> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    /// Starts a program and asks for its implementations.
    pub(crate) fn start(program: &ExternalProgram) -> Result<(Self, Vec<Offer>), ExternalError> {
        let mut process = Self::spawn(program, None)?;
        let offers = process.greet()?;
        Ok((process, offers))
    }

    /// Starts a program without a request, so that the program can load libraries in the meantime. `implementation`
    /// names the implementation whose cases the program opens; `None` if the program only lists its implementations.
    fn spawn(program: &ExternalProgram, implementation: Option<&str>) -> Result<Self, ExternalError> {
        let start = |error: io::Error| ExternalError::Start { program: program.to_string(), error };
        let (name, arguments) =
            program.0.split_first().ok_or_else(|| start(io::Error::other("the command line is empty")))?;
        let errors = tempfile::tempfile().map_err(start)?;
        let mut child = Command::new(name)
            .args(arguments)
            .envs(implementation.map(|name| (IMPLEMENTATION, name)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().map_err(start)?)
            .spawn()
            .map_err(start)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (requests, replies) = pipes.ok_or_else(|| start(io::Error::other("a pipe is missing")))?;
        let replies = BufReader::new(replies);
        let program = program.clone();
        Ok(Self { program, child, requests, replies, errors, next_id: 0, is_greeted: false })
    }

    /// Exchanges versions, and returns the implementations.
    fn greet(&mut self) -> Result<Vec<Offer>, ExternalError> {
        self.is_greeted = true;
        match self.request(&Request::Hello { version: VERSION })? {
            Reply::Hello { version: VERSION, implementations } => Ok(implementations),
            Reply::Hello { version, .. } => {
                Err(self.violation(format!("it speaks version {version}, and this is version {VERSION}")))
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Returns the running process of an implementation of a program, or starts a process without waiting for the
    /// program. Each implementation has a separate process, so that a crash affects no other implementation.
    pub(crate) fn shared(program: &ExternalProgram, implementation: &str) -> Result<SharedProcess, ExternalError> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (program.clone(), implementation.to_owned());
        if let Some(process) = running.get(&key)
            && lock(process).is_running()
        {
            return Ok(process.clone());
        }
        let process = Arc::new(Mutex::new(Self::spawn(program, Some(implementation))?));
        running.insert(key, process.clone());
        Ok(process)
    }

    /// Ends the processes of all programs except `needed`. A process with open cases ends after the last case.
    pub(crate) fn end_others(needed: &[ExternalProgram]) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|(program, _), _| needed.contains(program));
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns an unused case id.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Command line.
    pub(crate) fn program(&self) -> &ExternalProgram {
        &self.program
    }

    /// Sends a request and waits for its reply.
    pub(crate) fn request(&mut self, request: &Request) -> Result<Reply, ExternalError> {
        if !self.is_greeted {
            self.greet()?;
        }
        let mut line = serde_json::to_vec(request).map_err(|error| self.violation(error.to_string()))?;
        line.push(b'\n');
        let mut answer = String::new();
        let sent = self.requests.write_all(&line).and_then(|()| self.replies.read_line(&mut answer));
        if !sent.is_ok_and(|read| read > 0) {
            return Err(self.exited());
        }
        match serde_json::from_str(&answer) {
            Ok(Reply::Error { reason }) => Err(ExternalError::Reported(reason)),
            Ok(Reply::Unsupported { reason }) => Err(ExternalError::Unsupported(reason)),
            Ok(reply) => Ok(reply),
            Err(error) => Err(self.violation(format!("{error} in {}", excerpt(answer.trim(), 200)))),
        }
    }

    /// Error for a reply that does not fit its request.
    pub(crate) fn unexpected(&self, reply: &Reply) -> ExternalError {
        self.violation(format!("unexpected reply {}", serde_json::to_string(reply).unwrap_or_default()))
    }

    /// Error for a violation of the protocol.
    pub(crate) fn violation(&self, reason: String) -> ExternalError {
        ExternalError::Protocol { program: self.program.to_string(), reason }
    }

    /// Waits for the exit of a program that closed a pipe, or kills the program, and returns the error.
    fn exited(&mut self) -> ExternalError {
        // The status of a process that exits by itself is more informative than that of a kill.
        let start = Instant::now();
        while self.is_running() && start.elapsed() < EXIT_TIMEOUT {
            std::thread::sleep(Duration::from_millis(2));
        }
        let exit = match self.child.try_wait().ok().flatten() {
            Some(status) => format!("ended with {status}"),
            None => "closed its pipe and was killed".to_owned(),
        };
        drop(self.child.kill());
        drop(self.child.wait());
        let stderr = self.stderr_tail().unwrap_or_default();
        ExternalError::Exited { program: self.program.to_string(), exit, stderr }
    }

    /// Last lines of standard error.
    fn stderr_tail(&mut self) -> io::Result<String> {
        let end = self.errors.seek(SeekFrom::End(0))?;
        self.errors.seek(SeekFrom::Start(end.saturating_sub(STDERR_TAIL_BYTES)))?;
        let mut tail = Vec::new();
        self.errors.read_to_end(&mut tail)?;
        let text = String::from_utf8_lossy(&tail);
        let start = text.char_indices().rev().nth(MAX_STDERR_CHARS).map_or(0, |(at, _)| at);
        Ok(text[start..].trim().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may hang in user code, and nothing needs its results.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
