//! The mock device: times from a script, and every way a case can go wrong, so that the whole program can be tested
//! without a GPU and without waiting.

use calorimeter_timing::Script;
use calorimeter_zoo::{Output, Workload, ZooError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The variable that holds rules.
const RULES: &str = "CALORIMETER_MOCK_RULES";

/// What cases whose id matches do on the mock device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// A regular expression over the case's id; empty matches every case.
    #[serde(rename = "match", deserialize_with = "expression")]
    pub pattern: String,
    /// Nanoseconds of one launch.
    pub nanos: f64,
    /// Relative noise of a window.
    pub noise: f64,
    /// Nanoseconds that a window costs besides its launches.
    pub fixed: f64,
    /// Another number is other noise.
    pub seed: u64,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// Launches before it goes wrong.
    pub after: u64,
    /// Real milliseconds that each launch sleeps.
    pub sleep_ms: u64,
    /// How many times as long a launch takes while other devices work.
    pub in_company: f64,
}

/// An expression that is none is refused while its place in the file is known.
fn expression<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    crate::expression::parse(&pattern).map_err(serde::de::Error::custom)?;
    Ok(pattern)
}

impl Default for Rule {
    fn default() -> Self {
        let Script { nanos, noise, fixed, .. } = Script::default();
        Self {
            pattern: String::new(),
            nanos,
            noise,
            fixed,
            seed: 0,
            fault: None,
            after: 0,
            sleep_ms: 0,
            in_company: 1.0,
        }
    }
}

/// A way to go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The launch returns an error.
    Error,
    /// The launch panics.
    Panic,
    /// A device thread panics and everybody else is told that all is well; every later output of the process is wrong.
    DevicePanic,
    /// The process aborts.
    Abort,
    /// The process exits with status 0.
    Exit,
    /// The process is killed.
    Kill,
    /// The launch never returns.
    Hang,
    /// The process stops: not even its heartbeat goes on.
    Freeze,
    /// The output is wrong.
    Mismatch,
    /// The launch allocates memory without end.
    ExhaustMemory,
    /// The device is gone: the process ends before it touches the case.
    Lost,
}

impl Rule {
    /// The rule for a case, or the default one; an expression that is none is an error.
    pub fn of(rules: &[Self], id: &str) -> Result<Self, ZooError> {
        for rule in rules {
            let pattern = crate::expression::parse(&rule.pattern)
                .map_err(|error| ZooError::Unsupported(format!("mock rule: {error}")))?;
            if pattern.is_match(id) {
                return Ok(rule.clone());
            }
        }
        Ok(Self::default())
    }

    /// The rules for commands that read no file: those in the environment, in YAML as a file has them.
    pub fn of_the_environment() -> Result<Vec<Self>, String> {
        let Some(said) = std::env::var_os(RULES) else { return Ok(Vec::new()) };
        let said = said.into_string().map_err(|_| format!("{RULES} is no text"))?;
        serde_yaml::from_str(&said).map_err(|error| format!("{RULES} holds no rules of the mock device: {error}"))
    }

    /// Ends the process where the device of a case is gone.
    pub fn lose(rules: &[Self], id: &str) {
        if Self::of(rules, id).is_ok_and(|rule| rule.fault == Some(Fault::Lost)) {
            std::process::exit(1);
        }
    }

    /// The script of a case's clock: the same for the same id.
    pub fn script(&self, id: &str) -> Script {
        let seed = crate::fingerprint::fnv1a(id.as_bytes()) ^ self.seed;
        Script { nanos: self.nanos, noise: self.noise, fixed: self.fixed, seed, ..Script::default() }
    }
}

/// Whether a device thread of this process has panicked: as on a real device, what is computed afterwards is wrong and
/// nobody says so.
static POISONED: AtomicBool = AtomicBool::new(false);

/// A workload that computes nothing and goes wrong on cue.
pub struct MockWorkload {
    rule: Rule,
    launched: u64,
}

impl MockWorkload {
    /// A workload that follows a rule.
    pub fn new(rule: Rule) -> Self {
        Self { rule, launched: 0 }
    }

    fn go_wrong(&self, fault: Fault) -> Result<(), ZooError> {
        match fault {
            Fault::Error => return Err(ZooError::Device("the mock device reports an error".into())),
            Fault::Panic => panic!("the mock workload panicked"),
            Fault::DevicePanic => {
                let body = || panic!("can't allocate buffer of 640000000000 bytes");
                let thread = std::thread::Builder::new().name("DSD-9-0".into()).spawn(body);
                let _ = thread.map(|thread: std::thread::JoinHandle<()>| thread.join());
                POISONED.store(true, Ordering::SeqCst);
            }
            Fault::Abort => std::process::abort(),
            Fault::Exit => std::process::exit(0),
            Fault::Kill => signal(rustix::process::Signal::KILL),
            Fault::Freeze => signal(rustix::process::Signal::STOP),
            Fault::Hang => loop {
                std::thread::sleep(Duration::from_secs(60));
            },
            Fault::ExhaustMemory => {
                let mut hoard = Vec::new();
                loop {
                    hoard.push(vec![1u8; 64 << 20]);
                    std::hint::black_box(&hoard);
                }
            }
            // What is lost is lost before anything is launched.
            Fault::Mismatch | Fault::Lost => {}
        }
        Ok(())
    }
}

fn signal(signal: rustix::process::Signal) {
    let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    std::thread::sleep(Duration::from_secs(1));
}

impl Workload for MockWorkload {
    fn launch(&mut self) -> Result<(), ZooError> {
        self.launched += 1;
        if self.rule.sleep_ms > 0 {
            std::thread::sleep(Duration::from_millis(self.rule.sleep_ms));
        }
        match self.rule.fault {
            Some(fault) if self.launched > self.rule.after => self.go_wrong(fault),
            _ => Ok(()),
        }
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launch()?;
        let wrong = self.rule.fault == Some(Fault::Mismatch) || POISONED.load(Ordering::SeqCst);
        Ok(vec![Output { rows: 1, cols: 1, values: vec![if wrong { f32::NAN } else { 1.0 }] }])
    }

    fn weight_bytes(&self) -> u64 {
        0
    }
}
