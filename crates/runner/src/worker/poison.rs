//! Detection of cases that leave their process in an untrusted state.

use super::panics::{self, RecordedPanic};
use calorimeter_case::CaseId;
use calorimeter_timing::JitMonitor;
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Case that left the process in an untrusted state.
#[derive(Debug)]
pub(crate) struct PoisonedProcess {
    pub case: CaseId,
    pub cause: PoisonCause,
    pub reason: String,
}

/// Cause of the untrusted state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PoisonCause {
    /// A kernel required autotuning, which is disabled.
    TuningDisabled,
    /// Other panic.
    Panic,
    /// The case failed and left the device unusable.
    DeviceFailure,
}

/// Runs part of a case. A panic poisons the process, including a panic of a device thread that reported no error.
pub(super) fn catch_poison<T>(case: &CaseId, body: impl FnOnce() -> T) -> Result<T, PoisonedProcess> {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    if let Some(panic) = panics::device_panic() {
        return Err(poisoned_by(case, &panic));
    }
    outcome.map_err(|_| match panics::take_panics().pop() {
        Some(panic) => poisoned_by(case, &panic),
        None => PoisonedProcess { case: case.clone(), cause: panic_cause(), reason: "panicked".into() },
    })
}

pub(super) fn poisoned_by(case: &CaseId, panic: &RecordedPanic) -> PoisonedProcess {
    let RecordedPanic { thread, message } = panic;
    let reason = if panic.is_on_device_thread() {
        format!("panic on device thread {thread}; later results of this process cannot be trusted: {message}")
    } else {
        format!("panicked: {message}")
    };
    PoisonedProcess { case: case.clone(), cause: panic_cause(), reason }
}

/// Cause of a panic in this process. The logger panics at the first tuning event if tuning is disabled.
fn panic_cause() -> PoisonCause {
    let monitor = JitMonitor::install();
    let has_refused = monitor.is_tuning_disabled() && monitor.tuning_events() > 0;
    if has_refused { PoisonCause::TuningDisabled } else { PoisonCause::Panic }
}
