//! Foreign work whose programs are external workers.

use crate::factory::{allocate, fill};
use crate::process::Process;
use crate::protocol::OpenCase;
use crate::registry::registered;
use crate::shared_buffers::{SharedBuffers, Slot, place};
use crate::workload::{ExternalWorkload, SetInputs};
use crate::{ExternalError, ExternalProgram};
use calorimeter_zoo::foreign::{BufferRole, ForeignProblem, ResolvedBuffer};
use calorimeter_zoo::{Implementation, NativeDevices, Setup, Workload, ZooError};

/// Command line of an implementation of foreign work; `None` if the implementation is not an external worker.
fn program(problem: &ForeignProblem, implementation: Implementation) -> Option<ExternalProgram> {
    problem.worker_words(implementation).map(|words| ExternalProgram(words.to_vec()))
}

/// Starts the process of an external worker in advance, and ends the workers of other foreign work. Does nothing if the
/// implementation is not an external worker.
pub fn start_foreign_early(problem: &ForeignProblem, implementation: Implementation) {
    let Some(own) = program(problem, implementation) else { return };
    let needed: Vec<ExternalProgram> = problem
        .foreign
        .implementations()
        .into_iter()
        .filter_map(|one| program(problem, one))
        .chain(registered().into_iter().map(|known| known.program))
        .collect();
    Process::end_others(&needed);
    drop(Process::shared(&own, implementation.name().as_str()));
}

/// Opens an implementation of foreign work that is an external worker; `None` for other programs. The inputs of all
/// buffer sets are equal.
pub fn open_foreign(
    problem: &ForeignProblem,
    setup: Setup,
    machines: &mut NativeDevices,
) -> Option<Result<Box<dyn Workload>, ZooError>> {
    let program = program(problem, setup.implementation)?;
    Some(open(problem, &program, setup, machines))
}

fn open(
    problem: &ForeignProblem,
    program: &ExternalProgram,
    setup: Setup,
    machines: &mut NativeDevices,
) -> Result<Box<dyn Workload>, ZooError> {
    problem.support(setup.implementation, setup.device)?;
    let sharing = |error| ExternalError::Sharing { program: program.to_string(), error };
    let buffers = problem.buffers();
    if buffers.iter().any(|buffer| buffer.role == BufferRole::InOut) {
        return Err(ZooError::Unsupported("external workers have no buffers that are read and written".into()));
    }
    let slots = |role: BufferRole| -> Vec<Slot> {
        let slot = |buffer: &ResolvedBuffer| ([1, buffer.length], buffer.element);
        buffers.iter().filter(|buffer| buffer.role == role).map(slot).collect()
    };
    let (sets, bytes) = place(&slots(BufferRole::In), &slots(BufferRole::Out), setup.sets.max(1));
    let contents: Vec<Vec<u8>> = problem.initial_contents()?.into_iter().flatten().collect();
    let memory = allocate(bytes, setup.device, machines).map_err(sharing)?;
    let name = setup.implementation.name();
    let case = OpenCase {
        id: 0,
        subject: problem.foreign.name.clone(),
        implementation: name.to_string(),
        device: setup.device.to_string(),
        axes: problem.axes.clone(),
        dtype: problem.foreign.element(),
        recipe: "baseline".to_owned(),
        scalars: problem.scalars(),
        memory: memory.shared().map_err(sharing)?,
        bytes,
        sets: sets.clone(),
    };
    let mut buffers = SharedBuffers::new(memory, sets);
    let inputs = SetInputs { count: contents.len(), of_set: Box::new(move |_| contents.clone()), vary: false };
    fill(&mut buffers, &inputs).map_err(sharing)?;
    let process = Process::shared(program, name.as_str())?;
    Ok(Box::new(ExternalWorkload::open(process, buffers, inputs, case)?))
}
