//! Run side of the protocol: starts, watches, kills and replaces worker processes.

use super::child::{HEARTBEAT_INTERVAL, WORKER_ARGUMENT};
use super::event::{Stage, WorkerEvent, WorkerListener};
use super::poison::PoisonCause;
use super::position::ProgressFile;
use super::protocol::{AssignedCase, Assignment, AssignmentPurpose, WorkerCaches, WorkerCommand, WorkerMessage};
use super::remaining::remaining_cases;
use super::{Executor, WorkerError, autotune_cache};
use crate::entries::Autotune;
use calorimeter_case::{CaseId, Device, Record, Status, Warning};
use calorimeter_probe::devices::DiscoveredDevice;
use calorimeter_sinks::cache::file_name;
use calorimeter_timing::TUNING_DISABLED;
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
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Heartbeat timeout: a worker silent for this long is considered hung.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);
/// Cap on the time charged per poll, so that suspend or SIGSTOP does not trigger timeouts.
const MAX_CHARGE_PER_POLL: Duration = Duration::from_secs(1);
/// Timeout for a worker to exit by itself, and for its last output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes of standard error that are retained per worker.
const STDERR_TAIL_BYTES: usize = 4096;
/// Maximum number of workers in a row that exit before they start a case.
const MAX_EARLY_EXITS: u32 = 3;

/// Environment variable for the number of threads that prepare cases; a value set by the user has priority.
const THREADS_VARIABLE: &str = "RAYON_NUM_THREADS";

/// Executor that measures in worker processes, one at a time. Workers are this program, started again.
pub struct Subprocess {
    caches: WorkerCaches,
    worker: Option<Worker>,
    program: WorkerProgram,
    /// Threads per worker, if limited.
    threads: Option<usize>,
    /// Autotune cache for this run only. Without it, CubeCL would write to a project around the working directory.
    temporary_cache: Option<TempDir>,
}

/// Command that starts a worker.
type WorkerProgram = fn() -> std::io::Result<Command>;

/// Running worker process.
struct Worker {
    device: Device,
    /// True if the process was configured to trace kernels, so that it cannot time cases.
    traces_kernels: bool,
    child: Child,
    commands: ChildStdin,
    messages: Receiver<WorkerMessage>,
    position: ProgressFile,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Disconnected after all of standard error was read.
    stderr_closed: Receiver<()>,
}

/// Result of an assignment in a worker.
enum AssignmentEnd {
    Done,
    MissingRecord { case: CaseId },
    Interrupted,
    Poisoned { case: CaseId, cause: PoisonCause, reason: String },
    TimedOut { case: CaseId },
    Hung { case: Option<CaseId>, silence: Duration },
    Exited { case: Option<CaseId> },
}

impl Subprocess {
    /// Creates an executor whose workers use the given caches; tuned kernels have a directory per device.
    pub fn new(caches: WorkerCaches) -> Self {
        Self { caches, worker: None, program: own_program, threads: None, temporary_cache: None }
    }

    /// Creates another executor for concurrent devices. Threads are divided among them, so that preparation for one
    /// does not disturb the measurement of another.
    pub(super) fn sharing_threads(&self, devices: usize) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from) / devices.max(1);
        Self { program: self.program, threads: Some(threads.max(1)), ..Self::new(self.caches.clone()) }
    }

    /// Discards the worker: the next assignment starts a new process.
    pub fn restart_worker(&mut self) {
        self.worker = None;
    }

    fn worker_for(
        &mut self,
        device: &DiscoveredDevice,
        purpose: &AssignmentPurpose,
    ) -> Result<&mut Worker, WorkerError> {
        let traces_kernels = matches!(purpose, AssignmentPurpose::TraceKernels);
        let fits = |worker: &Worker| worker.device == device.device && worker.traces_kernels == traces_kernels;
        // The worker of another device must exit before the next one starts.
        let fitting = self.worker.take().filter(fits);
        let worker = match fitting {
            Some(worker) => worker,
            None => {
                let tuning = Some(self.autotune_dir(device).map_err(WorkerError::Spawn)?);
                Worker::start(
                    self.program,
                    self.threads,
                    device,
                    WorkerCaches { autotune_dir: tuning, ..self.caches.clone() },
                    traces_kernels,
                )?
            }
        };
        Ok(self.worker.insert(worker))
    }

    /// Autotune directory of a device: the persistent one if its content is trusted, otherwise a temporary one.
    fn autotune_dir(&mut self, device: &DiscoveredDevice) -> std::io::Result<PathBuf> {
        let name = file_name(&device.identity);
        let persistent = self.caches.autotune_dir.as_ref().map(|root| root.join(&name));
        if let Some(persistent) = persistent.filter(|folder| autotune_cache::is_trusted(folder)) {
            return Ok(persistent);
        }
        let temporary = match self.temporary_cache.take() {
            Some(temporary) => temporary,
            None => tempfile::Builder::new().prefix("calorimeter-").tempdir()?,
        };
        Ok(self.temporary_cache.insert(temporary).path().join(name))
    }
}

impl Executor for Subprocess {
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        listener: &mut dyn WorkerListener,
    ) -> Result<(), WorkerError> {
        let (mut finished, mut without_baseline) = (HashMap::new(), HashSet::new());
        let mut early_exits = 0;
        loop {
            let pending = remaining_cases(assignment, &finished);
            if pending.is_empty() || listener.interrupted() {
                return Ok(());
            }
            let rest = assignment.filter_cases(|id| pending.contains(id));
            let worker = self.worker_for(device, &assignment.purpose)?;
            let ending = worker.run_assignment(&rest, timeout, &mut finished, &without_baseline, listener);
            let (case, status, reason) = match ending {
                AssignmentEnd::Done => continue,
                AssignmentEnd::MissingRecord { case } => (
                    Some(case),
                    Status::Crashed,
                    "its worker process finished without a readable record of the case".into(),
                ),
                AssignmentEnd::Interrupted => {
                    self.worker = None;
                    return Ok(());
                }
                AssignmentEnd::Poisoned { case, cause: PoisonCause::TuningDisabled, .. } => {
                    let once = Autotune { level: self.caches.tuning_level, ..Autotune::default() };
                    (Some(case), Status::Skipped, format!("{TUNING_DISABLED}; run once with --autotune {once}"))
                }
                AssignmentEnd::Poisoned { case, cause: PoisonCause::Panic | PoisonCause::DeviceFailure, reason } => {
                    (Some(case), Status::Failed, reason)
                }
                AssignmentEnd::TimedOut { case } => {
                    (Some(case), Status::Timeout, format!("took longer than {timeout:?}"))
                }
                AssignmentEnd::Hung { case, silence } => (
                    case,
                    Status::Crashed,
                    format!("its worker process stopped responding (no heartbeat for {silence:?})"),
                ),
                AssignmentEnd::Exited { case } => (case, Status::Crashed, String::new()),
            };
            let (exit, stderr_tail) = self.worker.take().map(Worker::shut_down).unwrap_or_default();
            let exit = exit.unwrap_or_else(|| "closed its pipe and was killed".into());
            let reason = if reason.is_empty() { format!("its worker process {exit}") } else { reason };
            match case.and_then(|id| rest.cases.iter().find(|assigned| assigned.case.id == id)) {
                Some(assigned) => {
                    early_exits = 0;
                    let mut record = Record::without_time(assigned.case.clone(), status, reason);
                    record.outcome.stderr_tail = stderr_tail;
                    // A baseline that was measured again keeps its record, but no longer serves as a baseline.
                    if finished.insert(assigned.case.id.clone(), status).is_none() {
                        listener.on_event(WorkerEvent::CaseFinished(Box::new(record)));
                    } else {
                        let compared = |one: &&AssignedCase| one.baseline.as_ref() == Some(&assigned.case.id);
                        without_baseline
                            .extend(assignment.cases.iter().filter(compared).map(|one| one.case.id.clone()));
                    }
                }
                None => {
                    early_exits += 1;
                    if early_exits == MAX_EARLY_EXITS {
                        return Err(WorkerError::ExitedEarly(stderr_tail.unwrap_or(reason)));
                    }
                }
            }
        }
    }

    fn kernel_tracer(&self) -> Option<Box<dyn Executor>> {
        Some(Box::new(Self { threads: self.threads, ..Self::new(self.caches.clone()) }))
    }

    fn for_concurrent_devices(&self, devices: usize) -> Option<Box<dyn Executor + Send>> {
        Some(Box::new(self.sharing_threads(devices)))
    }
}

impl Worker {
    fn start(
        program: WorkerProgram,
        threads: Option<usize>,
        device: &DiscoveredDevice,
        caches: WorkerCaches,
        traces_kernels: bool,
    ) -> Result<Self, WorkerError> {
        let mut program = program().map_err(WorkerError::Spawn)?;
        if let Some(threads) = threads.filter(|_| std::env::var_os(THREADS_VARIABLE).is_none()) {
            program.env(THREADS_VARIABLE, threads.to_string());
        }
        let position = ProgressFile::create().map_err(WorkerError::Spawn)?;
        program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Kernel compilers recurse deeply on threads of the runtime.
            .env("RUST_MIN_STACK", (64u32 << 20).to_string())
            // Ctrl-C must reach only the run, which then ends its worker.
            .process_group(0);
        let mut child = position.spawn_inheriting(|| program.spawn()).map_err(WorkerError::Spawn)?;
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
                let excess = tail.len().saturating_sub(STDERR_TAIL_BYTES);
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

        let number = position.descriptor();
        let mut worker = Self {
            device: device.device,
            traces_kernels,
            child,
            commands: orders,
            messages,
            position,
            stderr,
            stderr_closed: drained,
        };
        let external = calorimeter_external::registered();
        worker.send(&WorkerCommand::Configure { position: number, caches, trace_kernels: traces_kernels, external });
        Ok(worker)
    }

    /// Sends a command. Write errors are ignored: the end of the event stream reveals a dead worker.
    fn send(&mut self, order: &WorkerCommand) {
        let mut line = serde_json::to_vec(order).unwrap_or_default();
        line.push(b'\n');
        let _ = self.commands.write_all(&line);
    }

    fn run_assignment(
        &mut self,
        assignment: &Assignment,
        timeout: Duration,
        finished: &mut HashMap<CaseId, Status>,
        without_baseline: &HashSet<CaseId>,
        listener: &mut dyn WorkerListener,
    ) -> AssignmentEnd {
        if self.position.clear().is_err() {
            return AssignmentEnd::Exited { case: None };
        }
        self.send(&WorkerCommand::Run(Box::new(assignment.clone())));
        let mut spent: HashMap<CaseId, Duration> = HashMap::new();
        let mut reported: HashSet<CaseId> = HashSet::new();
        let (mut silent, mut polled) = (Duration::ZERO, Instant::now());
        // Detects a hung worker before the case times out, but tolerates a few late heartbeats.
        let silence = HEARTBEAT_TIMEOUT.min(timeout / 2).max(3 * HEARTBEAT_INTERVAL);
        loop {
            if listener.interrupted() {
                return AssignmentEnd::Interrupted;
            }
            let message = match self.messages.recv_timeout(POLL_INTERVAL) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    return AssignmentEnd::Exited { case: self.current_case(assignment) };
                }
            };
            let passed = polled.elapsed().min(MAX_CHARGE_PER_POLL);
            polled = Instant::now();
            silent = if message.is_some() { Duration::ZERO } else { silent + passed };
            match message {
                Some(WorkerMessage::Event(mut event)) => {
                    if let WorkerEvent::CaseFinished(record) = &mut event
                        && record.is_ok()
                        && without_baseline.contains(&record.case.id)
                    {
                        record.warnings.push(Warning::missing_speedup(BASELINE_LOST));
                    }
                    let Some((case, status)) = event.finished_case() else { continue };
                    reported.insert(case.clone());
                    // A baseline that is measured again keeps its first record.
                    if let Entry::Vacant(first) = finished.entry(case.clone()) {
                        first.insert(status);
                        listener.on_event(event);
                    }
                }
                Some(WorkerMessage::Poisoned { case, cause, reason }) => {
                    return AssignmentEnd::Poisoned { case, cause, reason };
                }
                Some(WorkerMessage::Done) => {
                    let missing = assignment.cases.iter().find(|assigned| !finished.contains_key(&assigned.case.id));
                    return missing
                        .map_or(AssignmentEnd::Done, |one| AssignmentEnd::MissingRecord { case: one.case.id.clone() });
                }
                Some(WorkerMessage::Heartbeat) | None => {}
            }
            if silent > silence {
                return AssignmentEnd::Hung { case: self.current_case(assignment), silence };
            }
            if let Some((case, stage)) = self.position.get().and_then(|at| case_at(assignment, at)) {
                // Elapsed time is charged to the current case; windows are much shorter than the poll interval.
                let spent = spent.entry(case.clone()).or_default();
                *spent += passed;
                listener.report_progress(case, stage);
                // A finished case may run again as a baseline.
                if *spent > timeout && !reported.contains(case) {
                    return AssignmentEnd::TimedOut { case: case.clone() };
                }
            }
        }
    }

    /// Case that the worker reported last.
    fn current_case(&self, assignment: &Assignment) -> Option<CaseId> {
        Some(case_at(assignment, self.position.get()?)?.0.clone())
    }

    /// True if the process has exited; its status remains available.
    fn has_exited(&self) -> bool {
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
    fn shut_down(mut self) -> (Option<String>, Option<String>) {
        // The status of a process that exits by itself is more informative than that of a kill.
        let start = Instant::now();
        while !self.has_exited() && start.elapsed() < EXIT_TIMEOUT {
            std::thread::sleep(Duration::from_millis(2));
        }
        let exited = self.has_exited();
        self.kill();
        let exit = self.child.wait().ok().filter(|_| exited).map(describe_exit);
        // A process started by the worker may keep the pipe open.
        let _ = self.stderr_closed.recv_timeout(EXIT_TIMEOUT);
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = String::from_utf8_lossy(&stderr).trim().to_owned();
        (exit, (!tail.is_empty()).then_some(tail))
    }
}

/// Command for the running executable, even if its file was deleted or replaced.
fn own_program() -> std::io::Result<Command> {
    let running = Path::new("/proc/self/exe");
    let mut program = if running.exists() { Command::new(running) } else { Command::new(std::env::current_exe()?) };
    program.arg(WORKER_ARGUMENT);
    Ok(program)
}

/// Reason for a missing speed-up if the finished baseline crashed when it was measured again.
const BASELINE_LOST: &str = "the worker process exited while the baseline was measured again";

/// Case at a position of the worker's assignment.
fn case_at(assignment: &Assignment, (at, stage): (usize, Stage)) -> Option<(&CaseId, Stage)> {
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
fn describe_exit(status: ExitStatus) -> String {
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
    use calorimeter_probe::devices;
    use std::cell::RefCell;
    use std::collections::VecDeque;

    /// Listener that collects records.
    #[derive(Default)]
    struct RecordCollector(Vec<Record>);

    impl WorkerListener for RecordCollector {
        fn on_event(&mut self, event: WorkerEvent) {
            if let WorkerEvent::CaseFinished(record) = event {
                self.0.push(*record);
            }
        }
    }

    /// Records of a worker that prints these lines after each command.
    fn records_of_worker(assignment: &Assignment, lines: &[String]) -> Vec<Record> {
        let prints: String = lines.iter().map(|line| format!("echo '{line}'; ")).collect();
        records_of_workers(assignment, &[format!("while read order; do {prints} done")])
    }

    /// Records of workers that run these scripts in turn; descriptor 9 is the shared progress file.
    fn records_of_workers(assignment: &Assignment, workers: &[String]) -> Vec<Record> {
        thread_local!(static WORKERS: RefCell<VecDeque<String>> = RefCell::default());
        let takes_over = r#"read hello; exec 9<>"/dev/fd/$(echo "$hello" | sed 's/.*"position":\([0-9]*\).*/\1/')""#;
        WORKERS.set(workers.iter().map(|does| format!("{takes_over}; {does}")).collect());
        let program = || {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(WORKERS.with_borrow_mut(|left| left.pop_front()).expect("no more workers"));
            Ok(shell)
        };
        let device = devices::find_device(Device::Mock(0)).unwrap();
        let mut subprocess = Subprocess { program, ..Subprocess::new(WorkerCaches::default()) };
        let mut ends = RecordCollector::default();
        subprocess.run(assignment, &device, Duration::from_secs(30), &mut ends).unwrap();
        ends.0
    }

    fn to_line(message: &WorkerMessage) -> String {
        serde_json::to_string(message).unwrap()
    }

    #[test]
    fn unreadable_record_counts_as_crash() {
        let records = records_of_worker(
            &assignment(1),
            &[r#"{"event":{"ended":{"case":0,"rec"#.into(), to_line(&WorkerMessage::Done)],
        );
        let [record] = &records[..] else { panic!("{records:?}") };
        assert_eq!(record.outcome.status, Status::Crashed);
        assert!(record.outcome.reason.as_ref().unwrap().contains("without a readable record"), "{record:?}");
    }

    #[test]
    fn case_is_recorded_once() {
        let assignment = assignment(2);
        let record = |case: usize, status| {
            let record = Record::new(assignment.cases[case].case.clone(), status);
            to_line(&WorkerMessage::Event(WorkerEvent::CaseFinished(Box::new(record))))
        };
        let lines =
            [record(0, Status::Ok), record(0, Status::Failed), record(1, Status::Ok), to_line(&WorkerMessage::Done)];
        let records = records_of_worker(&assignment, &lines);
        let statuses: Vec<_> = records.iter().map(|record| (&*record.case.id, record.outcome.status)).collect();
        assert_eq!(statuses, [("0", Status::Ok), ("1", Status::Ok)]);
    }

    #[test]
    fn poison_cause_decides_the_status() {
        for (cause, status) in [
            (PoisonCause::TuningDisabled, Status::Skipped),
            (PoisonCause::Panic, Status::Failed),
            (PoisonCause::DeviceFailure, Status::Failed),
        ] {
            let assignment = assignment(1);
            let case = assignment.cases[0].case.id.clone();
            let poisoned = WorkerMessage::Poisoned { case, cause, reason: TUNING_DISABLED.into() };
            let records = records_of_workers(&assignment, &[format!("read order; echo '{}'", to_line(&poisoned))]);
            assert_eq!(records.iter().map(|record| record.outcome.status).collect::<Vec<_>>(), [status], "{cause:?}");
        }
    }

    #[test]
    fn lost_baseline_is_reported() {
        let assignment = assignment(2);
        let ended = |case: usize| {
            let record = Record::new(assignment.cases[case].case.clone(), Status::Ok);
            format!("echo '{}'", to_line(&WorkerMessage::Event(WorkerEvent::CaseFinished(Box::new(record)))))
        };
        let touches_the_baseline = r"printf '\001\000\000\000\004\000\000\000' >&9";
        let first = format!("read order; {touches_the_baseline}; {}", ended(0));
        let second = format!("read order; {}; echo '{}'; read more", ended(1), to_line(&WorkerMessage::Done));
        let records = records_of_workers(&assignment, &[first, second]);
        let warnings: Vec<_> = records.iter().map(|record| (&*record.case.id, record.warnings.to_vec())).collect();
        assert_eq!(warnings, [("0", vec![]), ("1", vec![Warning::missing_speedup(BASELINE_LOST)])]);
    }
}
