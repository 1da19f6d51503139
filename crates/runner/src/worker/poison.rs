//! Cases that leave their process in a state that cannot be trusted.

use super::panics::{self, Panic};
use calorimeter_case::CaseId;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A case that left the process in a state that cannot be trusted.
#[derive(Debug)]
pub struct Poisoned {
    pub case: CaseId,
    pub reason: String,
}

/// Runs part of a case; a panic is a poisoned process, also one that a device thread kept to itself.
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
        format!(
            "a panic on the device thread {thread}, after which nothing this process computes can be trusted: {message}"
        )
    } else {
        format!("panicked: {message}")
    };
    Poisoned { case: case.clone(), reason }
}
