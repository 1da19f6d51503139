//! Stopwatch of each regime, and regimes that a device does not support.

use crate::platforms::{self, StopwatchChoice};
use calorimeter_case::{Clock, Device, Implementation, Regime, excerpt};
use calorimeter_timing::{EndToEndClock, EnqueueClock, Failure, RemoteClock, Work};
use calorimeter_zoo::foreign::ForeignProblem;
use calorimeter_zoo::{NativeDevices, RemotePasses, Setup, Task};

/// Checks that a regime exists for an implementation of a task on a device; the error is the reason. Simulated devices
/// have all regimes, except for foreign commands.
pub fn supported(regime: Regime, task: &Task, implementation: Implementation, device: Device) -> Result<(), String> {
    let platform = platforms::for_device(device);
    let timed = task.timing_implementation(implementation);
    // Other processes capture their own streams.
    let captures = || {
        let is_remote = task.is_remote(implementation, device);
        platform.graphs().is_some_and(|graphs| is_remote || graphs.can_capture(timed))
    };
    match regime.clock() {
        _ if platform.is_simulated() => Ok(()),
        Clock::Graph if !captures() => Err(format!(
            "{regime}: only `native` on cuda enqueues on a stream that can be captured, not `{timed}` on {device}"
        )),
        Clock::Graph if task.is_transfer() => {
            Err(format!("{regime}: {} uses several streams, and only one can be captured", task.subject()))
        }
        Clock::Enqueuing if platform.is_synchronous() => {
            Err(format!("{regime}: calls on {device} are synchronous; use {}", Regime::HostE2e))
        }
        _ => Ok(()),
    }?;
    match task {
        Task::Foreign(problem) => supported_foreign(regime, problem, implementation, device),
        Task::Model(_) | Task::Operator(_) => Ok(()),
    }
}

/// Checks that a regime exists for a foreign program; the error names a supported regime.
pub fn supported_foreign(
    regime: Regime,
    problem: &ForeignProblem,
    implementation: Implementation,
    device: Device,
) -> Result<(), String> {
    let platform = platforms::for_device(device);
    let is_worker = problem.worker_words(implementation).is_some();
    if is_worker || problem.is_kernel(implementation) || regime.clock() == Clock::Waiting {
        return Ok(());
    }
    let time = Regime::HostE2e;
    if problem.is_process(implementation) {
        return Err(format!("{regime}: commands are synchronous; use {time}"));
    }
    if platform.is_synchronous() || platform.is_simulated() {
        return Ok(());
    }
    Err(format!("{regime}: library calls are synchronous; use {time} on {device}"))
}

// ANCHOR: stopwatch
/// Selects the stopwatch of a regime for a workload.
pub fn stopwatch(
    regime: Regime,
    setup: Setup,
    machines: &mut NativeDevices,
    work: &mut dyn Work,
) -> Result<StopwatchChoice, Failure> {
    let platform = platforms::for_device(setup.device);
    match regime.clock() {
        Clock::Device => platform.stopwatch(setup, machines, work),
        Clock::Graph => platform.graphs().ok_or("only cuda has graphs")?.stopwatch(setup, machines),
        Clock::Waiting => Ok((Box::new(EndToEndClock), None)),
        Clock::Enqueuing => Ok((Box::new(EnqueueClock), None)),
    }
}
// ANCHOR_END: stopwatch

/// Selects the stopwatch of a kind for passes that run in another process. That process has the clocks of this process,
/// so the clocks have the same names.
pub fn remote_stopwatch(clock: Clock, passes: &mut dyn RemotePasses, sets: u32) -> Result<RemoteClock, Failure> {
    let name = passes.clock_name(clock)?;
    RemoteClock::new(&name, clock, sets)
        .ok_or_else(|| format!("the process that runs the passes has the unknown clock {}", excerpt(&name, 40)).into())
}
