//! Mock device: times follow a script, and every kind of failure can be injected. It tests the whole program without a
//! GPU and without waiting.

use calorimeter_timing::Script;
use calorimeter_zoo::{Output, Workload, ZooError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Environment variable with rules as YAML.
const RULES_VARIABLE: &str = "CALORIMETER_MOCK_RULES";

/// Behavior of the mock device for cases whose id matches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a map such as {match: int8wo, nanos: 1000}")]
#[schemars(rename = "Rule")]
pub struct MockRule {
    /// Regular expression over the case id; an empty one matches every case.
    #[serde(rename = "match", deserialize_with = "expression")]
    pub pattern: String,
    /// Nanoseconds of one launch.
    pub nanos: f64,
    /// Relative noise of a window.
    pub noise: f64,
    /// Fixed overhead of a window in nanoseconds.
    pub fixed: f64,
    /// Seed of the noise.
    pub seed: u64,
    /// Injected failure.
    pub fault: Option<Fault>,
    /// Launches before the failure.
    pub after: u64,
    /// Milliseconds of wall time that each launch sleeps.
    pub sleep_ms: u64,
    /// Slowdown factor while other devices are busy.
    pub in_company: f64,
}

/// Validates the expression during parsing, so that the error has a position in the file.
fn expression<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    crate::expression::parse(&pattern).map_err(serde::de::Error::custom)?;
    Ok(pattern)
}

impl Default for MockRule {
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

/// Failure that the mock device injects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The launch returns an error.
    Error,
    /// The launch panics.
    Panic,
    /// A device thread panics without an error to the caller; every later output of the process is wrong.
    DevicePanic,
    /// The process aborts.
    Abort,
    /// The process exits with status 0.
    Exit,
    /// The process is killed.
    Kill,
    /// The launch never returns.
    Hang,
    /// The process stops, including its heartbeat.
    Freeze,
    /// The output is wrong.
    Mismatch,
    /// The launch allocates memory without limit.
    ExhaustMemory,
    /// The device is lost: the process exits before it starts the case.
    Lost,
}

impl MockRule {
    /// Returns the first rule that matches a case, or the default rule. Fails if an expression is invalid.
    pub fn for_case(rules: &[Self], id: &str) -> Result<Self, ZooError> {
        for rule in rules {
            let pattern = crate::expression::parse(&rule.pattern)
                .map_err(|error| ZooError::Unsupported(format!("mock rule: {error}")))?;
            if pattern.is_match(id) {
                return Ok(rule.clone());
            }
        }
        Ok(Self::default())
    }

    /// Returns the rules from the environment, for commands without a configuration file. The format is YAML, as in a
    /// file.
    pub fn from_environment() -> Result<Vec<Self>, String> {
        let Some(text) = std::env::var_os(RULES_VARIABLE) else { return Ok(Vec::new()) };
        let text = text.into_string().map_err(|_| format!("invalid {RULES_VARIABLE}: not UTF-8"))?;
        serde_yaml::from_str(&text)
            .map_err(|error| format!("invalid {RULES_VARIABLE}: expected rules of the mock device: {error}"))
    }

    /// Clock script of a case, determined by its id and the seed.
    pub fn script(&self, id: &str) -> Script {
        let seed = crate::fingerprint::fnv1a(id.as_bytes()) ^ self.seed;
        Script { nanos: self.nanos, noise: self.noise, fixed: self.fixed, seed, ..Script::default() }
    }
}

/// True after a device thread of this process panicked. As on a real device, later results are wrong without an error.
static POISONED: AtomicBool = AtomicBool::new(false);

/// Workload that computes nothing and fails as its rule says.
pub struct MockWorkload {
    rule: MockRule,
    launches: u64,
}

impl MockWorkload {
    /// Creates a workload that follows a rule.
    pub fn new(rule: MockRule) -> Self {
        Self { rule, launches: 0 }
    }

    fn inject(&self, fault: Fault) -> Result<(), ZooError> {
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
            // `Lost` exits before any launch.
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
        self.launches += 1;
        if self.rule.sleep_ms > 0 {
            std::thread::sleep(Duration::from_millis(self.rule.sleep_ms));
        }
        match self.rule.fault {
            Some(fault) if self.launches > self.rule.after => self.inject(fault),
            _ => Ok(()),
        }
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launch()?;
        let wrong = self.rule.fault == Some(Fault::Mismatch) || POISONED.load(Ordering::SeqCst);
        Ok(vec![Output { rows: 1, cols: 1, values: vec![if wrong { f32::NAN } else { 1.0 }] }])
    }
}
