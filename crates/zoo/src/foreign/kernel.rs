//! Foreign CUDA C++ kernels with their own buffer sets, launched on the stream of `native`.

use super::argument::{Buffer, Given};
use super::outputs::{Buffers, fresh, left};
use super::{Amount, ForeignProblem, KernelSource};
use crate::{Output, Workload, ZooError};
use calorimeter_case::Axes;
use calorimeter_kernels::native::{self, ForeignArgument, ForeignKernel, LaunchForm, Machine};
use std::sync::Arc;

/// Kernel workload; launches rotate through the sets.
struct Launched {
    machine: Arc<Machine>,
    sets: Vec<Set>,
    next: usize,
    name: String,
}

/// Arguments of a launch.
struct Set {
    machine: Arc<Machine>,
    kernel: Arc<ForeignKernel>,
    declared: Vec<Buffer>,
    /// All arguments, in order.
    arguments: Vec<ForeignArgument>,
    /// Indices of the arguments that are buffers.
    places: Vec<usize>,
    first: Arc<Vec<Option<Vec<u8>>>>,
    ran: bool,
}

/// Compiles the source and uploads the arguments once per buffer set.
pub fn open(
    source: &KernelSource,
    problem: &ForeignProblem,
    machine: Arc<Machine>,
    sets: u32,
) -> Result<Box<dyn Workload>, ZooError> {
    let KernelSource { path, entry, .. } = source;
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| ZooError::Device(format!("cannot read {path}: {error}")))?;
    let form = form(source, &problem.axes).map_err(ZooError::Shape)?;
    let kernel = Arc::new(ForeignKernel::compile(&machine, path, &text, entry, form)?);
    let first = Arc::new(problem.first_contents());
    let sets = (0..sets).map(|_| Set::new(&machine, &kernel, problem, &first));
    let sets = sets.collect::<Result<Vec<_>, _>>()?;
    let name = kernel.algorithm();
    Ok(Box::new(Launched { machine, sets, next: 0, name }))
}

/// Evaluates the launch configuration at a size.
fn form(source: &KernelSource, axes: &Axes) -> Result<LaunchForm, String> {
    let size = |amount: &Amount| {
        let value = amount.at(axes)?;
        u32::try_from(value).map_err(|_| format!("{amount} is {value}: expected at most 2^32 - 1"))
    };
    let sides = |amounts: &[Amount]| -> Result<[u32; 3], String> {
        let mut sides = [1; 3];
        for (side, amount) in sides.iter_mut().zip(amounts) {
            *side = size(amount)?;
        }
        Ok(sides)
    };
    let shared = source.shared.as_ref().map(size).transpose()?.unwrap_or(0);
    Ok(LaunchForm { grid: sides(&source.grid)?, block: sides(&source.block)?, shared })
}

impl Set {
    fn new(
        machine: &Arc<Machine>,
        kernel: &Arc<ForeignKernel>,
        problem: &ForeignProblem,
        first: &Arc<Vec<Option<Vec<u8>>>>,
    ) -> Result<Self, ZooError> {
        let (mut declared, mut arguments, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for given in problem.arguments()? {
            arguments.push(match given {
                Given::Value(bytes, _) => ForeignArgument::Value(bytes),
                Given::Buffer(buffer) => {
                    let memory = match &first[declared.len()] {
                        Some(content) => machine.upload(content)?,
                        None => {
                            let mut memory = machine.allocate(buffer.bytes() as usize)?;
                            memory.fill(0xFF)?;
                            memory
                        }
                    };
                    places.push(arguments.len());
                    declared.push(buffer);
                    ForeignArgument::Buffer(memory)
                }
            });
        }
        let (machine, kernel, first) = (machine.clone(), kernel.clone(), first.clone());
        Ok(Self { machine, kernel, declared, arguments, places, first, ran: false })
    }

    fn memory(&mut self, index: usize) -> Result<&mut native::Buffer, ZooError> {
        match self.arguments.get_mut(self.places[index]) {
            Some(ForeignArgument::Buffer(memory)) => Ok(memory),
            _ => Err(ZooError::Device(format!("argument {index} is not a buffer"))),
        }
    }

    fn enqueue(&mut self) -> Result<(), ZooError> {
        self.ran = true;
        Ok(self.kernel.enqueue(&mut self.arguments)?)
    }
}

impl Buffers for Set {
    fn buffers(&self) -> &[Buffer] {
        &self.declared
    }

    fn fill(&mut self, index: usize, byte: u8) -> Result<(), ZooError> {
        Ok(self.memory(index)?.fill(byte)?)
    }

    fn restore(&mut self, index: usize) -> Result<(), ZooError> {
        let first = self.first.clone();
        match &first[index] {
            Some(content) => Ok(self.memory(index)?.upload(content)?),
            None => Ok(()),
        }
    }

    fn read(&mut self, index: usize) -> Result<Vec<u8>, ZooError> {
        Ok(self.memory(index)?.download()?)
    }

    fn call(&mut self) -> Result<(), ZooError> {
        self.enqueue()?;
        Ok(self.machine.synchronize()?)
    }
}

impl Workload for Launched {
    fn launch(&mut self) -> Result<(), ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        self.sets[set].enqueue()
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(self.machine.synchronize()?)
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        fresh(&mut self.sets[set])
    }

    fn kept(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        match self.sets.get_mut(set as usize) {
            Some(set) if set.ran => left(set),
            _ => Ok(None),
        }
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        0
    }

    fn may_use_tf32(&self) -> bool {
        // Unknown for foreign kernels, so TF32 tolerances are allowed.
        true
    }

    fn kernel(&self) -> Option<String> {
        Some(self.name.clone())
    }
}
