//! Simulator of cases on the mock device.

use super::Assignment;
use crate::mock::{Fault, MockRule, MockWorkload};
use calorimeter_case::Case;
use calorimeter_timing::{MockClock, Script, Stopwatch};
use calorimeter_zoo::{Output, Workload, ZooError};

/// Simulator of an assignment's cases. Their clocks share one time.
pub(crate) struct Simulator {
    rules: Vec<MockRule>,
    concurrent_devices: bool,
    clock: MockClock,
}

impl Simulator {
    /// Creates the simulator of an assignment. Exits the process if the device is lost.
    pub(crate) fn new(assignment: &Assignment) -> Self {
        let Assignment { cases, mock: rules, concurrent_devices, .. } = assignment;
        let rule = cases.first().and_then(|first| MockRule::for_case(rules, &first.case.id).ok());
        if rule.is_some_and(|rule| rule.fault == Some(Fault::Lost)) {
            std::process::exit(1);
        }
        let clock = MockClock::new(Script::default());
        Self { rules: rules.clone(), concurrent_devices: *concurrent_devices, clock }
    }

    /// Opens a case.
    pub(crate) fn open(&self, case: &Case) -> Result<Box<dyn Workload>, ZooError> {
        Ok(Box::new(MockWorkload::new(MockRule::for_case(&self.rules, &case.id)?)))
    }

    /// Creates the stopwatch of a case, for all regimes.
    pub(crate) fn stopwatch(&self, case: &Case) -> Result<Box<dyn Stopwatch>, ZooError> {
        let mut rule = MockRule::for_case(&self.rules, &case.id)?;
        if self.concurrent_devices {
            rule.nanos *= rule.in_company;
        }
        Ok(Box::new(self.clock.with_shared_machine(rule.script(&case.id))))
    }

    /// Checks the outputs of a pass; the error is the reason for a mismatch.
    pub(crate) fn check(outputs: &[Output]) -> Result<(), String> {
        let wrong = outputs.iter().flat_map(|output| &output.values).any(|value| value.is_nan());
        if wrong { Err("the mock device was told to be wrong".into()) } else { Ok(()) }
    }
}
