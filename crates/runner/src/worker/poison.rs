//! Detection of cases that leave their process in an untrusted state.

use super::panics::{self, RecordedPanic};
use calorimeter_case::CaseId;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Case that left the process in an untrusted state.
#[derive(Debug)]
pub struct PoisonedProcess {
    pub case: CaseId,
    pub reason: String,
}

/// Runs part of a case. A panic poisons the process, including a panic of a device thread that reported no error.
pub fn catch_poison<T>(case: &CaseId, body: impl FnOnce() -> T) -> Result<T, PoisonedProcess> {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    if let Some(panic) = panics::device_panic() {
        return Err(poisoned_by(case, &panic));
    }
    outcome.map_err(|_| match panics::take_panics().pop() {
        Some(panic) => poisoned_by(case, &panic),
        None => PoisonedProcess { case: case.clone(), reason: "panicked".into() },
    })
}

pub fn poisoned_by(case: &CaseId, panic: &RecordedPanic) -> PoisonedProcess {
    let RecordedPanic { thread, message } = panic;
    let reason = if panic.is_on_device_thread() {
        format!("panic on device thread {thread}; later results of this process cannot be trusted: {message}")
    } else {
        format!("panicked: {message}")
    };
    PoisonedProcess { case: case.clone(), reason }
}
