//! The run's side: worker processes started, watched, ended and replaced.

use super::position::Position;
use super::process::{BEAT, WORKER};
use super::protocol::{Assignment, Event, Keep, Order};
use super::{Executor, Watch, WorkerError};
use crate::cache::file_name;
use crate::devices::DiscoveredDevice;
use calorimeter_case::record::Outcome;
use calorimeter_sinks::{Record, Status};
use calorimeter_timing::FORBIDDEN;
use calorimeter_zoo::Device;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the run looks up from its workers.
const GLANCE: Duration = Duration::from_millis(50);
/// A worker that is silent for so long is frozen, whatever its cases may take.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a worker that is done for may take to end by itself, and its last words to arrive.
const PATIENCE: Duration = Duration::from_secs(1);
/// How much of a worker's standard error is kept.
const TAIL: usize = 4096;
/// Workers that may end in a row without touching a case.
const STILLBORN: u32 = 3;

/// Measures in worker processes, one at a time: this program, started again.
pub struct Subprocess {
    keep: Keep,
    worker: Option<Worker>,
}

/// A running worker.
struct Worker {
    device: Device,
    child: Child,
    orders: ChildStdin,
    events: Receiver<Event>,
    position: Position,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Disconnected when all of standard error has been read.
    drained: Receiver<()>,
}

/// How a worker's work on an assignment came to an end.
enum Ending {
    Done,
    Unheard { case: usize },
    Interrupted,
    Poisoned { case: usize, reason: String },
    TimedOut { case: usize },
    Frozen { case: Option<usize>, silence: Duration },
    Gone { case: Option<usize> },
}

impl Subprocess {
    /// Workers keep what they find out for later ones, tuned kernels in a folder for each device.
    pub fn new(keep: Keep) -> Self {
        Self { keep, worker: None }
    }

    fn worker(&mut self, device: &DiscoveredDevice) -> Result<&mut Worker, WorkerError> {
        if self.worker.as_ref().is_some_and(|worker| worker.device != device.device) {
            self.worker = None;
        }
        match &mut self.worker {
            Some(worker) => Ok(worker),
            none => Ok(none.insert(Worker::start(device, &self.keep)?)),
        }
    }
}

impl Executor for Subprocess {
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        watch: &mut dyn Watch,
    ) -> Result<(), WorkerError> {
        let mut ended = vec![None; assignment.cases.len()];
        let mut stillborn = 0;
        loop {
            let left = remaining(assignment, &ended);
            if left.is_empty() || watch.interrupted() {
                return Ok(());
            }
            let worker = self.worker(device)?;
            let ending = worker.work(&assignment.only(&left), &left, timeout, &mut ended, watch);
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
                    (Some(case), Status::Skipped, format!("{FORBIDDEN}; run once with --autotune cached"))
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
            match case.map(|case| left[case]) {
                Some(case) => {
                    stillborn = 0;
                    let identity = assignment.cases[case].clone();
                    let record = Record {
                        outcome: Outcome { reason: Some(reason), stderr_tail, ..status.into() },
                        ..Record::new(identity, status)
                    };
                    // One that was touched again as another one's baseline keeps its record, and is a baseline no more.
                    if ended[case].replace(status).is_none() {
                        watch.record(case, record);
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
        Some(Box::new(Self::new(Keep { look: true, ..self.keep.clone() })))
    }
}

/// The cases that have not ended, with the baselines that they are compared with: those are measured again beside them,
/// and their records stand.
pub fn remaining(assignment: &Assignment, ended: &[Option<Status>]) -> Vec<usize> {
    let left = |case: &usize| ended[*case].is_none();
    let baselines: Vec<usize> = (0..ended.len()).filter(left).filter_map(|case| assignment.against[case]).collect();
    let again = |case: &usize| ended[*case] == Some(Status::Ok) && baselines.contains(case);
    (0..ended.len()).filter(|case| left(case) || again(case)).collect()
}

impl Worker {
    fn start(device: &DiscoveredDevice, keep: &Keep) -> Result<Self, WorkerError> {
        let mut program = Command::new(std::env::current_exe().map_err(WorkerError::Spawn)?);
        program.arg(WORKER);
        Self::running(program, device, keep)
    }

    fn running(mut program: Command, device: &DiscoveredDevice, keep: &Keep) -> Result<Self, WorkerError> {
        let (position, path) = Position::create().map_err(WorkerError::Spawn)?;
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Kernel compilers recurse deeply on threads that the runtime starts.
            .env("RUST_MIN_STACK", (64u32 << 20).to_string())
            // Ctrl-C is for the run, which then ends its worker in order.
            .process_group(0)
            .spawn()
            .map_err(WorkerError::Spawn)?;
        let missing = || WorkerError::Spawn(std::io::Error::other("a pipe is missing"));
        let (orders, stdout) = (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
        let mut errors = child.stderr.take().ok_or_else(missing)?;

        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // A line cut short by a crash is the crash's business; that of one that goes on is missed when it is done.
                if let Ok(event) = serde_json::from_str(&line)
                    && sender.send(event).is_err()
                {
                    break;
                }
            }
        });
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let kept = stderr.clone();
        let (reading, drained) = channel();
        std::thread::spawn(move || {
            let _reading = reading;
            let mut chunk = [0; 1024];
            while let Ok(read @ 1..) = errors.read(&mut chunk) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&chunk[..read]);
                let excess = kept.len().saturating_sub(TAIL);
                kept.drain(..excess);
            }
        });

        let mut worker = Self { device: device.device, child, orders, events, position, stderr, drained };
        let tuning = keep.tuning.as_ref().map(|root| root.join(file_name(&device.identity)));
        worker.order(&Order::Hello { position: path, keep: Keep { tuning, ..keep.clone() } });
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
        left: &[usize],
        timeout: Duration,
        ended: &mut [Option<Status>],
        watch: &mut dyn Watch,
    ) -> Ending {
        self.position.clear();
        self.order(&Order::Measure(Box::new(assignment.clone())));
        let mut spent = vec![Duration::ZERO; assignment.cases.len()];
        let mut told = vec![false; assignment.cases.len()];
        let (mut heard, mut looked) = (Instant::now(), Instant::now());
        // A frozen case is told from a slow one while there is time for it, and never by a beat or two that came late.
        let silence = SILENCE.min(timeout / 2).max(3 * BEAT);
        loop {
            if watch.interrupted() {
                return Ending::Interrupted;
            }
            let event = match self.events.recv_timeout(GLANCE) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ending::Gone { case: self.touched() },
            };
            if event.is_some() {
                heard = Instant::now();
            }
            match event {
                Some(Event::Record { case, record }) => {
                    told[case] = true;
                    if ended[left[case]].is_none() {
                        ended[left[case]] = Some(record.outcome.status);
                        watch.record(left[case], *record);
                    }
                }
                Some(Event::Seen { case, seen }) => {
                    told[case] = true;
                    ended[left[case]] = Some(Status::Ok);
                    watch.seen(left[case], seen);
                }
                Some(Event::Poisoned { case, reason }) => return Ending::Poisoned { case, reason },
                Some(Event::Done) => {
                    let unheard = left.iter().position(|&case| ended[case].is_none());
                    return unheard.map_or(Ending::Done, |case| Ending::Unheard { case });
                }
                Some(Event::Beat) | None => {}
            }
            if heard.elapsed() > silence {
                return Ending::Frozen { case: self.touched(), silence };
            }
            if let Some((case, stage)) = self.position.get().filter(|(case, _)| *case < spent.len()) {
                // What passed since the last look is charged to the case that is touched now: windows are short beside it.
                spent[case] += looked.elapsed();
                watch.touch(left[case], stage);
                // One that has told its result may be touched again as another one's baseline.
                if spent[case] > timeout && !told[case] {
                    return Ending::TimedOut { case };
                }
            }
            looked = Instant::now();
        }
    }

    /// The case that the worker touched last.
    fn touched(&self) -> Option<usize> {
        self.position.get().map(|(case, _)| case)
    }

    /// Ends the process and says how it ended, and what it last wrote to standard error.
    fn end(mut self) -> (Option<String>, Option<String>) {
        // One that is about to end by itself has a more telling status than one that is killed.
        let patience = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && patience.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
        let exit = self.child.try_wait().ok().flatten().map(describe);
        drop(self.child.kill());
        drop(self.child.wait());
        // A process that the worker had started may hold the pipe open.
        let _ = self.drained.recv_timeout(PATIENCE);
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = String::from_utf8_lossy(&stderr).trim().to_owned();
        (exit, (!tail.is_empty()).then_some(tail))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    use super::*;
    use crate::devices;
    use calorimeter_sinks::Case;

    /// Keeps what it is told.
    #[derive(Default)]
    struct Heard(Vec<(usize, Record)>);

    impl Watch for Heard {
        fn touch(&mut self, _: usize, _: super::super::Stage) {}
        fn record(&mut self, case: usize, record: Record) {
            self.0.push((case, record));
        }
        fn interrupted(&self) -> bool {
            false
        }
    }

    /// A baseline and cases that are compared with it.
    fn assignment(cases: usize) -> Assignment {
        Assignment {
            cases: vec![Case::default(); cases],
            against: (0..cases).map(|case| (case > 0).then_some(0)).collect(),
            device: Default::default(),
            sets: vec![1; cases],
            seen: vec![],
            folder: None,
            timing: None,
            seed: 0,
            mock: vec![],
        }
    }

    /// What is heard of a worker that says these lines to each order.
    fn heard(cases: usize, lines: &[String]) -> Vec<(usize, Record)> {
        let says: String = lines.iter().map(|line| format!("echo '{line}'; ")).collect();
        let takes_over = r#"read hello; rm "$(echo "$hello" | sed 's/.*"position":"\([^"]*\)".*/\1/')""#;
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{takes_over}; while read order; do {says} done"));
        let device = devices::present(Device::Mock).unwrap();
        let worker = Worker::running(shell, &device, &Keep::default()).unwrap();
        let mut subprocess = Subprocess { keep: Keep::default(), worker: Some(worker) };
        let mut heard = Heard::default();
        subprocess.run(&assignment(cases), &device, Duration::from_secs(30), &mut heard).unwrap();
        heard.0
    }

    fn said(event: &Event) -> String {
        serde_json::to_string(event).unwrap()
    }

    #[test]
    fn a_case_whose_record_cannot_be_read_has_crashed() {
        let heard = heard(1, &[r#"{"record":{"case":0,"rec"#.into(), said(&Event::Done)]);
        let [(0, record)] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!(record.outcome.status, Status::Crashed);
        assert!(record.outcome.reason.as_ref().unwrap().contains("without a readable record"), "{record:?}");
    }

    #[test]
    fn a_case_is_recorded_once() {
        let record =
            |case, status| said(&Event::Record { case, record: Box::new(Record::new(Case::default(), status)) });
        let lines = [record(0, Status::Ok), record(0, Status::Failed), record(1, Status::Ok), said(&Event::Done)];
        let statuses: Vec<_> =
            heard(2, &lines).into_iter().map(|(case, record)| (case, record.outcome.status)).collect();
        assert_eq!(statuses, [(0, Status::Ok), (1, Status::Ok)]);
    }

    #[test]
    fn what_is_left_keeps_the_baseline_that_was_measured() {
        let (ok, crashed) = (Some(Status::Ok), Some(Status::Crashed));
        for (ended, expected) in [
            ([None, None, None], vec![0, 1, 2]),
            ([ok, crashed, None], vec![0, 2]),
            ([crashed, None, None], vec![1, 2]),
            ([ok, crashed, ok], vec![]),
            ([None, ok, ok], vec![0]),
        ] {
            assert_eq!(remaining(&assignment(3), &ended), expected, "{ended:?}");
        }
    }
}
