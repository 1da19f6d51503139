//! Which stopwatch answers the question of a regime, and where there is none.

use crate::platforms::{self, Choice};
use calorimeter_case::{Clock, Device, Implementation, Regime};
use calorimeter_timing::{EndToEnd, Enqueue, Failure, Work};
use calorimeter_zoo::foreign::ForeignProblem;
use calorimeter_zoo::{Machines, Setup};

/// Whether a regime exists for an implementation on a device; the error says why not.
pub fn supported(regime: Regime, implementation: Implementation, device: Device) -> Result<(), String> {
    let platform = platforms::of(device);
    match regime.clock() {
        Clock::Graph if !platform.has_graphs(implementation) => Err(format!(
            "{regime}: only `native` on cuda enqueues on a stream that can be captured, not `{implementation}` on {device}"
        )),
        Clock::Enqueuing if platform.is_synchronous() => Err(format!(
            "{regime}: work on the {device} has been done when the call returns; {} is its time",
            Regime::HostE2e
        )),
        _ => Ok(()),
    }
}

/// Whether a regime exists for a program that is not ours; the error says which does.
pub fn supported_of_others(
    regime: Regime,
    problem: &ForeignProblem,
    implementation: Implementation,
    device: Device,
) -> Result<(), String> {
    let platform = platforms::of(device);
    if problem.is_a_kernel(implementation) || regime.clock() == Clock::Waiting {
        return Ok(());
    }
    let time = Regime::HostE2e;
    if problem.is_a_process(implementation) {
        return Err(format!("{regime}: a command is started and waited for; {time} is its time"));
    }
    if platform.is_synchronous() || platform.is_scripted() {
        return Ok(());
    }
    Err(format!("{regime}: a library is called by the host, which waits for it; on {device} {time} is its time"))
}

// ANCHOR: stopwatch
/// The stopwatch for work of a setup in a regime.
pub fn stopwatch(
    regime: Regime,
    setup: Setup,
    machines: &mut Machines,
    work: &mut dyn Work,
) -> Result<Choice, Failure> {
    let platform = platforms::of(setup.device);
    match regime.clock() {
        Clock::Device => platform.stopwatch(setup, machines, work),
        Clock::Graph => platform.graph_stopwatch(setup, machines),
        Clock::Waiting => Ok((Box::new(EndToEnd), None)),
        Clock::Enqueuing => Ok((Box::new(Enqueue), None)),
    }
}
// ANCHOR_END: stopwatch
