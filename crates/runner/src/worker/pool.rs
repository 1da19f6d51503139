//! The run's side: worker processes started, watched, ended and replaced.

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

/// How often the run looks up from its workers.
const GLANCE: Duration = Duration::from_millis(50);
/// A worker that is silent for so long is frozen, whatever its cases may take.
const SILENCE: Duration = Duration::from_secs(30);
/// What passes between two glances is at most so much: a run that was stopped, or whose machine slept, saw no more.
const AWAKE: Duration = Duration::from_secs(1);
/// How long a worker that is done for may take to end by itself, and its last words to arrive.
const PATIENCE: Duration = Duration::from_secs(1);
/// How much of a worker's standard error is kept.
const TAIL: usize = 4096;
/// Workers that may end in a row without touching a case.
const STILLBORN: u32 = 3;

/// The variable that says how many threads prepare cases; who sets it means it.
const THREADS: &str = "RAYON_NUM_THREADS";

/// Measures in worker processes, one at a time: this program, started again.
pub struct Subprocess {
    kept: Kept,
    worker: Option<Worker>,
    program: Program,
    /// Threads that a worker prepares its cases with, where it may not have all.
    threads: Option<usize>,
    /// Where kernels are tuned whose tuning is not kept: CubeCL would keep it in a project around the working directory.
    passing: Option<TempDir>,
}

/// What is started as a worker.
type Program = fn() -> std::io::Result<Command>;

/// A running worker.
struct Worker {
    device: Device,
    child: Child,
    orders: ChildStdin,
    messages: Receiver<Message>,
    position: Position,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when all of standard error has been read.
    drained: Receiver<()>,
}

/// How a worker's work on an assignment came to an end.
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
    /// Workers keep what they find out for later ones, tuned kernels in a folder for each device.
    pub fn new(kept: Kept) -> Self {
        Self { kept, worker: None, program: myself, threads: None, passing: None }
    }

    /// Another one of as many as there are devices: what one prepares on all threads would disturb what another one measures.
    pub(super) fn sharing(&self, devices: usize) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from) / devices.max(1);
        Self { program: self.program, threads: Some(threads.max(1)), ..Self::new(self.kept.clone()) }
    }

    /// What is measured next is measured in a fresh process.
    pub fn renew(&mut self) {
        self.worker = None;
    }

    fn worker(&mut self, device: &DiscoveredDevice) -> Result<&mut Worker, WorkerError> {
        // That of another device ends before the next one starts.
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

    /// The folder of what is tuned for a device: the one that is kept, if what is in it may be obeyed.
    fn tuning(&mut self, device: &DiscoveredDevice) -> std::io::Result<PathBuf> {
        let name = file_name(&device.identity);
        let kept = self.kept.tuning.as_ref().map(|root| root.join(&name));
        if let Some(kept) = kept.filter(|folder| tuned::is_trusted(folder)) {
            return Ok(kept);
        }
        let passing = match self.passing.take() {
            Some(passing) => passing,
            None => tempfile::Builder::new().prefix("calorimeter-").tempdir()?,
        };
        Ok(self.passing.insert(passing).path().join(name))
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
        let (mut ended, mut bereft) = (HashMap::new(), HashSet::new());
        let mut stillborn = 0;
        loop {
            let left = remaining(assignment, &ended);
            if left.is_empty() || listener.interrupted() {
                return Ok(());
            }
            let rest = assignment.only(|id| left.contains(id));
            let ending = self.worker(device)?.work(&rest, timeout, &mut ended, &bereft, listener);
            let (case, status, reason) = match ending {
                Ending::Done => continue,
                Ending::Unheard { case } => {
                    (Some(case), Status::Crashed, "its worker process finished without a readable record of it".into())
                }
                Ending::Interrupted => {
                    self.worker = None;
                    return Ok(());
                }
                Ending::Poisoned { case, reason } if reason.contains(FORBIDDEN) => {
                    let once = Autotune { level: self.kept.level, ..Autotune::default() };
                    (Some(case), Status::Skipped, format!("{FORBIDDEN}; run once with --autotune {once}"))
                }
                Ending::Poisoned { case, reason } => (Some(case), Status::Failed, reason),
                Ending::TimedOut { case } => (Some(case), Status::Timeout, format!("took longer than {timeout:?}")),
                Ending::Frozen { case, silence } => {
                    (case, Status::Crashed, format!("its worker process gave no sign of life for {silence:?}"))
                }
                Ending::Gone { case } => (case, Status::Crashed, String::new()),
            };
            let (exit, stderr_tail) = self.worker.take().map(Worker::end).unwrap_or_default();
            let exit = exit.unwrap_or_else(|| "closed its pipe and had to be ended".into());
            let reason = if reason.is_empty() { format!("its worker process {exit}") } else { reason };
            match case.and_then(|id| rest.cases.iter().find(|assigned| assigned.case.id == id)) {
                Some(assigned) => {
                    stillborn = 0;
                    let mut record = Record::without_time(assigned.case.clone(), status, reason);
                    record.outcome.stderr_tail = stderr_tail;
                    // One that was touched again as another one's baseline keeps its record, and is a baseline no more.
                    if ended.insert(assigned.case.id.clone(), status).is_none() {
                        listener.hear(Event::Ended(Box::new(record)));
                    } else {
                        let compared = |one: &&AssignedCase| one.against.as_ref() == Some(&assigned.case.id);
                        bereft.extend(assignment.cases.iter().filter(compared).map(|one| one.case.id.clone()));
                    }
                }
                None => {
                    stillborn += 1;
                    if stillborn == STILLBORN {
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
            // Kernel compilers recurse deeply on threads that the runtime starts.
            .env("RUST_MIN_STACK", (64u32 << 20).to_string())
            // Ctrl-C is for the run, which then ends its worker in order.
            .process_group(0);
        let mut child = position.inherited(|| program.spawn()).map_err(WorkerError::Spawn)?;
        let missing = || WorkerError::Spawn(std::io::Error::other("a pipe is missing"));
        let (orders, stdout) = (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
        let mut errors = child.stderr.take().ok_or_else(missing)?;

        let (sender, messages) = channel();
        let reader = move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A line cut short by a crash is the crash's business; that of one that goes on is missed when it is done.
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

    /// Gives an order; a worker that is gone shows it by its events ending.
    fn order(&mut self, order: &Order) {
        let mut line = serde_json::to_vec(order).unwrap_or_default();
        line.push(b'\n');
        let _ = self.orders.write_all(&line);
    }

    fn work(
        &mut self,
        assignment: &Assignment,
        timeout: Duration,
        ended: &mut HashMap<CaseId, Status>,
        bereft: &HashSet<CaseId>,
        listener: &mut dyn Listener,
    ) -> Ending {
        if self.position.clear().is_err() {
            return Ending::Gone { case: None };
        }
        self.order(&Order::Measure(Box::new(assignment.clone())));
        let mut spent: HashMap<CaseId, Duration> = HashMap::new();
        let mut told: HashSet<CaseId> = HashSet::new();
        let (mut silent, mut looked) = (Duration::ZERO, Instant::now());
        // A frozen case is told from a slow one while there is time for it, and never by a beat or two that came late.
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
            let passed = looked.elapsed().min(AWAKE);
            looked = Instant::now();
            silent = if message.is_some() { Duration::ZERO } else { silent + passed };
            match message {
                Some(Message::Event(mut event)) => {
                    if let Event::Ended(record) = &mut event
                        && record.is_ok()
                        && bereft.contains(&record.case.id)
                    {
                        record.warn(BEREFT);
                    }
                    let (case, status) = match &event {
                        Event::Ended(record) => (record.case.id.clone(), record.outcome.status),
                        Event::Saw { case, .. } => (case.clone(), Status::Ok),
                        Event::Begun { .. } | Event::AtWork(_) | Event::Touched { .. } => continue,
                    };
                    told.insert(case.clone());
                    // A baseline that is measured again keeps its first record.
                    if let Entry::Vacant(first) = ended.entry(case) {
                        first.insert(status);
                        listener.hear(event);
                    }
                }
                Some(Message::Poisoned { case, reason }) => return Ending::Poisoned { case, reason },
                Some(Message::Done) => {
                    let unheard = assignment.cases.iter().find(|assigned| !ended.contains_key(&assigned.case.id));
                    return unheard.map_or(Ending::Done, |one| Ending::Unheard { case: one.case.id.clone() });
                }
                Some(Message::Beat) | None => {}
            }
            if silent > silence {
                return Ending::Frozen { case: self.touched(assignment), silence };
            }
            if let Some((case, stage)) = self.position.get().and_then(|at| named(assignment, at)) {
                // What passed since the last look is charged to the case that is touched now: windows are short beside it.
                let spent = spent.entry(case.clone()).or_default();
                *spent += passed;
                listener.touch(case, stage);
                // One that has told its result may be touched again as another one's baseline.
                if *spent > timeout && !told.contains(case) {
                    return Ending::TimedOut { case: case.clone() };
                }
            }
        }
    }

    /// The case that the worker touched last.
    fn touched(&self, assignment: &Assignment) -> Option<CaseId> {
        Some(named(assignment, self.position.get()?)?.0.clone())
    }

    /// Whether the process has ended; it is still there to be asked how.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), look), Ok(None))
    }

    /// Kills the process and all that it has started: commands that are timed outlive their worker else.
    fn kill(&mut self) {
        // It leads its group, whose number nobody else has before it was waited for.
        if kill_process_group(Pid::from_child(&self.child), Signal::KILL).is_err() {
            drop(self.child.kill());
        }
    }

    /// Ends the process and says how it ended, and what it last wrote to standard error.
    fn end(mut self) -> (Option<String>, Option<String>) {
        // One that is about to end by itself has a more telling status than one that is killed.
        let patience = Instant::now();
        while !self.has_ended() && patience.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
        let by_itself = self.has_ended();
        self.kill();
        let exit = self.child.wait().ok().filter(|_| by_itself).map(describe);
        // A process that the worker had started may hold the pipe open.
        let _ = self.drained.recv_timeout(PATIENCE);
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = String::from_utf8_lossy(&stderr).trim().to_owned();
        (exit, (!tail.is_empty()).then_some(tail))
    }
}

/// This very program, be its file deleted or replaced meanwhile.
fn myself() -> std::io::Result<Command> {
    let running = Path::new("/proc/self/exe");
    let mut program = if running.exists() { Command::new(running) } else { Command::new(std::env::current_exe()?) };
    program.arg(WORKER);
    Ok(program)
}

/// Said of a case whose baseline had its record, and was lost when it was measured again beside it.
const BEREFT: &str = "it has no speed-up: the worker process ended while its baseline was measured again";

/// The case at a position of the assignment that a worker was given.
fn named(assignment: &Assignment, (at, stage): (usize, Stage)) -> Option<(&CaseId, Stage)> {
    Some((&assignment.cases.get(at)?.case.id, stage))
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that was waited for has no number any more.
        if let Ok(None) = self.child.try_wait() {
            self.kill();
            drop(self.child.wait());
        }
    }
}

/// How a process ended, as the end of a sentence.
fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (_, Some(6)) => "aborted (signal 6)".into(),
        (_, Some(9)) => "was killed (signal 9), which the system does when memory runs out".into(),
        (_, Some(11)) => "crashed with a segmentation fault (signal 11)".into(),
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::remaining::tests::assignment;
    use super::*;
    use crate::devices;
    use std::cell::RefCell;
    use std::collections::VecDeque;

    /// Keeps the records that it is told.
    #[derive(Default)]
    struct Ends(Vec<Record>);

    impl Listener for Ends {
        fn hear(&mut self, event: Event) {
            if let Event::Ended(record) = event {
                self.0.push(*record);
            }
        }
    }

    /// What is heard of a worker that says these lines to each order.
    fn heard(assignment: &Assignment, lines: &[String]) -> Vec<Record> {
        let says: String = lines.iter().map(|line| format!("echo '{line}'; ")).collect();
        heard_of_each(assignment, &[format!("while read order; do {says} done")])
    }

    /// What is heard of workers that do this, one after the other; 9 is the file that says what they touch.
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
        let heard = heard(&assignment(1), &[r#"{"event":{"ended":{"case":0,"rec"#.into(), said(&Message::Done)]);
        let [record] = &heard[..] else { panic!("{heard:?}") };
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
        let heard = heard(&assignment, &lines);
        let statuses: Vec<_> = heard.iter().map(|record| (&*record.case.id, record.outcome.status)).collect();
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
        let heard = heard_of_each(&assignment, &[first, second]);
        let told: Vec<_> = heard.iter().map(|record| (&*record.case.id, record.outcome.warnings.clone())).collect();
        assert_eq!(told, [("0", vec![]), ("1", vec![BEREFT.to_owned()])]);
    }
}
