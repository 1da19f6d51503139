//! Other users of a device, from its sensors.

use calorimeter_timing::telemetry::Source;
use std::time::Duration;
use sysinfo::{Process, ProcessRefreshKind, ProcessesToUpdate, System};

/// Returns the current users; for sources that list processes.
#[cfg(feature = "native")]
pub(super) fn current_users(source: &mut dyn Source) -> Result<Vec<String>, String> {
    source.other_users(&child_processes())
}

/// Returns the users between two samples, for sources with shares of processor time.
pub(super) fn users_between_samples(source: &mut dyn Source) -> Result<Vec<String>, String> {
    let own = child_processes();
    source.other_users(&own)?;
    std::thread::sleep(Duration::from_millis(200));
    source.other_users(&own)
}

/// Child processes of this process.
fn child_processes() -> Vec<u32> {
    let Ok(mut system) = System::new() else { return Vec::new() };
    system.refresh_processes_specifics(ProcessesToUpdate::All, false, ProcessRefreshKind::nothing().without_tasks());
    let is_child = |process: &Process| process.parent().is_some_and(|parent| parent.as_u32() == std::process::id());
    system.processes().values().filter(|process| is_child(process)).map(|process| process.pid().as_u32()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn started_process_is_a_child() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = child_processes();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()) && !found.contains(&std::process::id()), "{found:?}");
    }
}
