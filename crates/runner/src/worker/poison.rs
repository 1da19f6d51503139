//! Detection of cases that leave their process in an untrusted state.

use super::panics::{self, Panic};
use calorimeter_case::CaseId;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Case that left the process in an untrusted state.
#[derive(Debug)]
pub struct Poisoned {
    pub case: CaseId,
    pub reason: String,
}

/// Runs part of a case. A panic poisons the process, including a panic of a device thread that reported no error.
pub fn guarded<T>(case: &CaseId, body: impl FnOnce() -> T) -> Result<T, Poisoned> {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    if let Some(panic) = panics::on_device() {
        return Err(poisoned(case, &panic));
    }
    outcome.map_err(|_| match panics::take().pop() {
        Some(panic) => poisoned(case, &panic),
        None => Poisoned { case: case.clone(), reason: "panicked".into() },
    })
}

pub fn poisoned(case: &CaseId, panic: &Panic) -> Poisoned {
    let Panic { thread, message } = panic;
    let reason = if panic.on_a_device_thread() {
        format!("panic on device thread {thread}; later results of this process cannot be trusted: {message}")
    } else {
        format!("panicked: {message}")
    };
    Poisoned { case: case.clone(), reason }
}
