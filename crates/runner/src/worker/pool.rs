//! Run side of the protocol: starts, watches, kills and replaces worker processes.

use super::child::{BEAT, WORKER};
use super::event::{Event, Listener, Stage};
use super::position::Position;
use super::protocol::{AssignedCase, Assignment, Kept, Message, Order};
use super::remaining::remaining;
use super::{Executor, WorkerError, tuned};
use crate::cache::file_name;
use crate::devices::DiscoveredDevice;
use crate::entries::Autotune;
use calorimeter_case::{CaseId, Device, Record, Status};
use calorimeter_timing::FORBIDDEN;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Poll interval for worker events.
const GLANCE: Duration = Duration::from_millis(50);
/// Heartbeat timeout: a worker silent for this long is considered hung.
const SILENCE: Duration = Duration::from_secs(30);
/// Cap on the time charged per poll, so that suspend or SIGSTOP does not trigger timeouts.
const AWAKE: Duration = Duration::from_secs(1);
/// Timeout for a worker to exit by itself, and for its last output.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of standard error that are retained per worker.
const TAIL: usize = 4096;
/// Maximum number of workers in a row that exit before they start a case.
const STILLBORN: u32 = 3;

/// Environment variable for the number of threads that prepare cases; a value set by the user has priority.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Executor that measures in worker processes, one at a time. Workers are this program, started again.
pub struct Subprocess {
    kept: Kept,
    worker: Option<Worker>,
    program: Program,
    /// Threads per worker, if limited.
    threads: Option<usize>,
    /// Autotune cache for this run only. Without it, CubeCL would write to a project around the working directory.
    passing: Option<TempDir>,
}

/// Command that starts a worker.
type Program = fn() -> std::io::Result<Command>;

/// Running worker process.
struct Worker {
    device: Device,
    child: Child,
    orders: ChildStdin,
    messages: Receiver<Message>,
    position: Position,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Disconnected after all of standard error was read.
    drained: Receiver<()>,
}

/// Result of an assignment in a worker.
enum Ending {
    Done,
    Unheard { case: CaseId },
    Interrupted,
    Poisoned { case: CaseId, reason: String },
    TimedOut { case: CaseId },
    Frozen { case: Option<CaseId>, silence: Duration },
    Gone { case: Option<CaseId> },
}

impl Subprocess {
    /// Creates an executor whose workers use the given caches; tuned kernels have a directory per device.
    pub fn new(kept: Kept) -> Self {
        Self { kept, worker: None, program: myself, threads: None, passing: None }
    }

    /// Creates another executor for concurrent devices. Threads are divided among them, so that preparation for one
    /// does not disturb the measurement of another.
    pub(super) fn sharing(&self, devices: usize) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from) / devices.max(1);
        Self { program: self.program, threads: Some(threads.max(1)), ..Self::new(self.kept.clone()) }
    }

    /// Discards the worker: the next assignment starts a new process.
    pub fn renew(&mut self) {
        self.worker = None;
    }

    fn worker(&mut self, device: &DiscoveredDevice) -> Result<&mut Worker, WorkerError> {
        // The worker of another device must exit before the next one starts.
        let fitting = self.worker.take().filter(|worker| worker.device == device.device);
        let worker = match fitting {
            Some(worker) => worker,
            None => {
                let tuning = Some(self.tuning(device).map_err(WorkerError::Spawn)?);
                Worker::start(self.program, self.threads, device, Kept { tuning, ..self.kept.clone() })?
            }
        };
        Ok(self.worker.insert(worker))
    }

    /// Autotune directory of a device: the persistent one if its content is trusted, otherwise a temporary one.
    fn tuning(&mut self, device: &DiscoveredDevice) -> std::io::Result<PathBuf> {
        let name = file_name(&device.identity);
        let persistent = self.kept.tuning.as_ref().map(|root| root.join(&name));
        if let Some(persistent) = persistent.filter(|folder| tuned::is_trusted(folder)) {
            return Ok(persistent);
        }
        let temporary = match self.passing.take() {
            Some(temporary) => temporary,
            None => tempfile::Builder::new().prefix("calorimeter-").tempdir()?,
        };
        Ok(self.passing.insert(temporary).path().join(name))
    }
}

impl Executor for Subprocess {
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        listener: &mut dyn Listener,
    ) -> Result<(), WorkerError> {
        let (mut finished, mut without_baseline) = (HashMap::new(), HashSet::new());
        let mut early_exits = 0;
        loop {
            let pending = remaining(assignment, &finished);
            if pending.is_empty() || listener.interrupted() {
                return Ok(());
            }
            let rest = assignment.only(|id| pending.contains(id));
            let ending = self.worker(device)?.work(&rest, timeout, &mut finished, &without_baseline, listener);
            let (case, status, reason) = match ending {
                Ending::Done => continue,
                Ending::Unheard { case } => (
                    Some(case),
                    Status::Crashed,
                    "its worker process finished without a readable record of the case".into(),
                ),
                Ending::Interrupted => {
                    self.worker = None;
                    return Ok(());
                }
                Ending::Poisoned { case, reason } if reason.contains(FORBIDDEN) => {
                    let once = Autotune { level: self.kept.level, ..Autotune::default() };
                    (Some(case), Status::Skipped, format!("{}; run once with --autotune {once}", FORBIDDEN))
                }
                Ending::Poisoned { case, reason } => (Some(case), Status::Failed, reason),
                Ending::TimedOut { case } => (Some(case), Status::Timeout, format!("took longer than {timeout:?}")),
                Ending::Frozen { case, silence } => (
                    case,
                    Status::Crashed,
                    format!("its worker process stopped responding (no heartbeat for {silence:?})"),
                ),
                Ending::Gone { case } => (case, Status::Crashed, String::new()),
            };
            let (exit, stderr_tail) = self.worker.take().map(Worker::end).unwrap_or_default();
            let exit = exit.unwrap_or_else(|| "closed its pipe and was killed".into());
            let reason = if reason.is_empty() { format!("its worker process {exit}") } else { reason };
            match case.and_then(|id| rest.cases.iter().find(|assigned| assigned.case.id == id)) {
                Some(assigned) => {
                    early_exits = 0;
                    let mut record = Record::without_time(assigned.case.clone(), status, reason);
                    record.outcome.stderr_tail = stderr_tail;
                    // A baseline that was measured again keeps its record, but no longer serves as a baseline.
                    if finished.insert(assigned.case.id.clone(), status).is_none() {
                        listener.hear(Event::Ended(Box::new(record)));
                    } else {
                        let compared = |one: &&AssignedCase| one.against.as_ref() == Some(&assigned.case.id);
                        without_baseline
                            .extend(assignment.cases.iter().filter(compared).map(|one| one.case.id.clone()));
                    }
                }
                None => {
                    early_exits += 1;
                    if early_exits == STILLBORN {
                        return Err(WorkerError::Stillborn(stderr_tail.unwrap_or(reason)));
                    }
                }
            }
        }
    }

    fn looker(&self) -> Option<Box<dyn Executor>> {
        Some(Box::new(Self { threads: self.threads, ..Self::new(Kept { look: true, ..self.kept.clone() }) }))
    }

    fn another(&self, devices: usize) -> Option<Box<dyn Executor + Send>> {
        Some(Box::new(self.sharing(devices)))
    }
}

impl Worker {
    fn start(
        program: Program,
        threads: Option<usize>,
        device: &DiscoveredDevice,
        kept: Kept,
    ) -> Result<Self, WorkerError> {
        let mut program = program().map_err(WorkerError::Spawn)?;
        if let Some(threads) = threads.filter(|_| std::env::var_os(THREADS).is_none()) {
            program.env(THREADS, threads.to_string());
        }
        let position = Position::create().map_err(WorkerError::Spawn)?;
        program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Kernel compilers recurse deeply on threads of the runtime.
            .env("RUST_MIN_STACK", (64u32 << 20).to_string())
            // Ctrl-C must reach only the run, which then ends its worker.
            .process_group(0);
        let mut child = position.inherited(|| program.spawn()).map_err(WorkerError::Spawn)?;
        let missing = || WorkerError::Spawn(std::io::Error::other("a pipe is missing"));
        let (orders, stdout) = (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
        let mut errors = child.stderr.take().ok_or_else(missing)?;

        let (sender, messages) = channel();
        let reader = move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A truncated line belongs to a crash, which is detected separately. If the worker continues, the
                // missing record is detected at the end.
                if let Ok(message) = serde_json::from_str(&line)
                    && sender.send(message).is_err()
                {
                    break;
                }
            }
        };
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let tail = stderr.clone();
        let (reading, drained) = channel();
        let listener = move || {
            let _reading = reading;
            let mut chunk = [0; 1024];
            while let Ok(read @ 1..) = errors.read(&mut chunk) {
                let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(&chunk[..read]);
                let excess = tail.len().saturating_sub(TAIL);
                tail.drain(..excess);
            }
        };
        let threads =
            std::thread::Builder::new().spawn(reader).and_then(|_| std::thread::Builder::new().spawn(listener));
        if let Err(error) = threads {
            drop(child.kill());
            drop(child.wait());
            return Err(WorkerError::Spawn(error));
        }

        let number = position.number();
        let mut worker = Self { device: device.device, child, orders, messages, position, stderr, drained };
        worker.order(&Order::Hello { position: number, kept });
        Ok(worker)
    }

    /// Sends a command. Write errors are ignored: the end of the event stream reveals a dead worker.
    fn order(&mut self, order: &Order) {
        let mut line = serde_json::to_vec(order).unwrap_or_default();
        line.push(b'\n');
        let _ = self.orders.write_all(&line);
    }

    fn work(
        &mut self,
        assignment: &Assignment,
        timeout: Duration,
        finished: &mut HashMap<CaseId, Status>,
        without_baseline: &HashSet<CaseId>,
        listener: &mut dyn Listener,
    ) -> Ending {
        if self.position.clear().is_err() {
            return Ending::Gone { case: None };
        }
        self.order(&Order::Measure(Box::new(assignment.clone())));
        let mut spent: HashMap<CaseId, Duration> = HashMap::new();
        let mut reported: HashSet<CaseId> = HashSet::new();
        let (mut silent, mut polled) = (Duration::ZERO, Instant::now());
        // Detects a hung worker before the case times out, but tolerates a few late heartbeats.
        let silence = SILENCE.min(timeout / 2).max(3 * BEAT);
        loop {
            if listener.interrupted() {
                return Ending::Interrupted;
            }
            let message = match self.messages.recv_timeout(GLANCE) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ending::Gone { case: self.touched(assignment) },
            };
            let passed = polled.elapsed().min(AWAKE);
            polled = Instant::now();
            silent = if message.is_some() { Duration::ZERO } else { silent + passed };
            match message {
                Some(Message::Event(mut event)) => {
                    if let Event::Ended(record) = &mut event
                        && record.is_ok()
                        && without_baseline.contains(&record.case.id)
                    {
                        record.warn(BEREFT);
                    }
                    let (case, status) = match &event {
                        Event::Ended(record) => (record.case.id.clone(), record.outcome.status),
                        Event::Saw { case, .. } => (case.clone(), Status::Ok),
                        Event::Begun { .. } | Event::AtWork(_) | Event::Touched { .. } => continue,
                    };
                    reported.insert(case.clone());
                    // A baseline that is measured again keeps its first record.
                    if let Entry::Vacant(first) = finished.entry(case) {
                        first.insert(status);
                        listener.hear(event);
                    }
                }
                Some(Message::Poisoned { case, reason }) => return Ending::Poisoned { case, reason },
                Some(Message::Done) => {
                    let missing = assignment.cases.iter().find(|assigned| !finished.contains_key(&assigned.case.id));
                    return missing.map_or(Ending::Done, |one| Ending::Unheard { case: one.case.id.clone() });
                }
                Some(Message::Beat) | None => {}
            }
            if silent > silence {
                return Ending::Frozen { case: self.touched(assignment), silence };
            }
            if let Some((case, stage)) = self.position.get().and_then(|at| named(assignment, at)) {
                // Elapsed time is charged to the current case; windows are much shorter than the poll interval.
                let spent = spent.entry(case.clone()).or_default();
                *spent += passed;
                listener.touch(case, stage);
                // A finished case may run again as a baseline.
                if *spent > timeout && !reported.contains(case) {
                    return Ending::TimedOut { case: case.clone() };
                }
            }
        }
    }

    /// Case that the worker reported last.
    fn touched(&self, assignment: &Assignment) -> Option<CaseId> {
        Some(named(assignment, self.position.get()?)?.0.clone())
    }

    /// True if the process has exited; its status remains available.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }

    /// Kills the process group, because timed commands would otherwise outlive their worker.
    fn kill(&mut self) {
        // The worker leads its group, and the id is not reused before the process was waited for.
        if kill_process_group(Pid::from_child(&self.child), Signal::KILL).is_err() {
            drop(self.child.kill());
        }
    }

    /// Ends the process; returns its exit description and the tail of standard error.
    fn end(mut self) -> (Option<String>, Option<String>) {
        // The status of a process that exits by itself is more informative than that of a kill.
        let start = Instant::now();
        while !self.has_ended() && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
        let exited = self.has_ended();
        self.kill();
        let exit = self.child.wait().ok().filter(|_| exited).map(describe);
        // A process started by the worker may keep the pipe open.
        let _ = self.drained.recv_timeout(PATIENCE);
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = String::from_utf8_lossy(&stderr).trim().to_owned();
        (exit, (!tail.is_empty()).then_some(tail))
    }
}

/// Command for the running executable, even if its file was deleted or replaced.
fn myself() -> std::io::Result<Command> {
    let running = Path::new("/proc/self/exe");
    let mut program = if running.exists() { Command::new(running) } else { Command::new(std::env::current_exe()?) };
    program.arg(WORKER);
    Ok(program)
}

/// Warning for a case whose finished baseline crashed when it was measured again.
const BEREFT: &str = "no speed-up: the worker process exited while the baseline was measured again";

/// Case at a position of the worker's assignment.
fn named(assignment: &Assignment, (at, stage): (usize, Stage)) -> Option<(&CaseId, Stage)> {
    Some((&assignment.cases.get(at)?.case.id, stage))
}

impl Drop for Worker {
    fn drop(&mut self) {
        // After a wait the process id may be reused, so that a kill would be unsafe.
        if let Ok(None) = self.child.try_wait() {
            self.kill();
            drop(self.child.wait());
        }
    }
}

/// Describes the exit of a process, as the end of a sentence.
fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (_, Some(6)) => "aborted (signal 6)".into(),
        (_, Some(9)) => "was killed (signal 9), possibly because memory ran out".into(),
        (_, Some(11)) => "crashed with a segmentation fault (signal 11)".into(),
        (_, Some(signal)) => format!("was terminated by signal {signal}"),
        _ => "exited".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::remaining::tests::assignment;
    use super::*;
    use crate::devices;
    use std::cell::RefCell;
    use std::collections::VecDeque;

    /// Listener that collects records.
    #[derive(Default)]
    struct Ends(Vec<Record>);

    impl Listener for Ends {
        fn hear(&mut self, event: Event) {
            if let Event::Ended(record) = event {
                self.0.push(*record);
            }
        }
    }

    /// Records of a worker that prints these lines after each command.
    fn heard(assignment: &Assignment, lines: &[String]) -> Vec<Record> {
        let prints: String = lines.iter().map(|line| format!("echo '{line}'; ")).collect();
        heard_of_each(assignment, &[format!("while read order; do {prints} done")])
    }

    /// Records of workers that run these scripts in turn; descriptor 9 is the shared progress file.
    fn heard_of_each(assignment: &Assignment, workers: &[String]) -> Vec<Record> {
        thread_local!(static WORKERS: RefCell<VecDeque<String>> = RefCell::default());
        let takes_over = r#"read hello; exec 9<>"/dev/fd/$(echo "$hello" | sed 's/.*"position":\([0-9]*\).*/\1/')""#;
        WORKERS.set(workers.iter().map(|does| format!("{takes_over}; {does}")).collect());
        let program = || {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(WORKERS.with_borrow_mut(|left| left.pop_front()).expect("no more workers"));
            Ok(shell)
        };
        let device = devices::present(Device::Mock(0)).unwrap();
        let mut subprocess = Subprocess { program, ..Subprocess::new(Kept::default()) };
        let mut ends = Ends::default();
        subprocess.run(assignment, &device, Duration::from_secs(30), &mut ends).unwrap();
        ends.0
    }

    fn said(message: &Message) -> String {
        serde_json::to_string(message).unwrap()
    }

    #[test]
    fn a_case_whose_record_cannot_be_read_has_crashed() {
        let records = heard(&assignment(1), &[r#"{"event":{"ended":{"case":0,"rec"#.into(), said(&Message::Done)]);
        let [record] = &records[..] else { panic!("{records:?}") };
        assert_eq!(record.outcome.status, Status::Crashed);
        assert!(record.outcome.reason.as_ref().unwrap().contains("without a readable record"), "{record:?}");
    }

    #[test]
    fn a_case_is_recorded_once() {
        let assignment = assignment(2);
        let record = |case: usize, status| {
            let record = Record::new(assignment.cases[case].case.clone(), status);
            said(&Message::Event(Event::Ended(Box::new(record))))
        };
        let lines = [record(0, Status::Ok), record(0, Status::Failed), record(1, Status::Ok), said(&Message::Done)];
        let records = heard(&assignment, &lines);
        let statuses: Vec<_> = records.iter().map(|record| (&*record.case.id, record.outcome.status)).collect();
        assert_eq!(statuses, [("0", Status::Ok), ("1", Status::Ok)]);
    }

    #[test]
    fn a_case_whose_baseline_is_lost_when_it_is_measured_again_says_so() {
        let assignment = assignment(2);
        let ended = |case: usize| {
            let record = Record::new(assignment.cases[case].case.clone(), Status::Ok);
            format!("echo '{}'", said(&Message::Event(Event::Ended(Box::new(record)))))
        };
        let touches_the_baseline = r"printf '\001\000\000\000\004\000\000\000' >&9";
        let first = format!("read order; {touches_the_baseline}; {}", ended(0));
        let second = format!("read order; {}; echo '{}'; read more", ended(1), said(&Message::Done));
        let records = heard_of_each(&assignment, &[first, second]);
        let warnings: Vec<_> =
            records.iter().map(|record| (&*record.case.id, record.outcome.warnings.clone())).collect();
        assert_eq!(warnings, [("0", vec![]), ("1", vec![BEREFT.to_owned()])]);
    }
}
