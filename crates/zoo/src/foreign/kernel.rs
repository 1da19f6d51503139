//! Foreign CUDA C++ kernels with their own buffer sets, launched on the stream of `native`.

use super::argument::{ResolvedArgument, ResolvedBuffer};
use super::outputs::{CallBuffers, call_and_read, read_last};
use super::{AxisExpression, ForeignProblem, KernelSource};
use crate::rotating_workload::{self, SetPass, WorkloadProperties};
use crate::{Output, Workload, ZooError};
use calorimeter_case::Axes;
use calorimeter_kernels::native::{self, CudaDevice, ForeignArgument, ForeignKernel, UserLaunchConfig};
use std::sync::Arc;

/// Pass on the stream of a device.
struct ForeignKernelPass(Arc<CudaDevice>);

/// Arguments of a launch.
struct ForeignKernelSet {
    machine: Arc<CudaDevice>,
    kernel: Arc<ForeignKernel>,
    declared: Vec<ResolvedBuffer>,
    /// All arguments, in order.
    arguments: Vec<ForeignArgument>,
    /// Indices of the arguments that are buffers.
    buffer_indices: Vec<usize>,
    initial_contents: Arc<Vec<Option<Vec<u8>>>>,
}

/// Compiles the source and uploads the arguments once per buffer set.
pub(super) fn open(
    source: &KernelSource,
    problem: &ForeignProblem,
    machine: Arc<CudaDevice>,
    sets: u32,
) -> Result<Box<dyn Workload>, ZooError> {
    let KernelSource { path, entry, .. } = source;
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| ZooError::Device(format!("cannot read {path}: {error}")))?;
    let form = launch_form(source, &problem.axes).map_err(ZooError::Shape)?;
    let kernel = Arc::new(ForeignKernel::compile(&machine, path, &text, entry, form)?);
    let first = Arc::new(problem.initial_contents()?);
    let sets = (0..sets).map(|_| ForeignKernelSet::new(&machine, &kernel, problem, &first));
    let sets = sets.collect::<Result<Vec<_>, _>>()?;
    // Foreign kernels may use TF32, so its tolerances are allowed.
    let properties = WorkloadProperties { kernel: Some(kernel.algorithm()), may_use_tf32: true, ..Default::default() };
    Ok(rotating_workload::open(ForeignKernelPass(machine), sets, properties))
}

/// Evaluates the launch configuration at a size.
fn launch_form(source: &KernelSource, axes: &Axes) -> Result<UserLaunchConfig, String> {
    let size = |amount: &AxisExpression| {
        let value = amount.evaluate(axes)?;
        u32::try_from(value).map_err(|_| format!("{amount} is {value}: expected at most 2^32 - 1"))
    };
    let sides = |amounts: &[AxisExpression]| -> Result<[u32; 3], String> {
        let mut sides = [1; 3];
        for (side, amount) in sides.iter_mut().zip(amounts) {
            *side = size(amount)?;
        }
        Ok(sides)
    };
    let shared = source.shared.as_ref().map(size).transpose()?.unwrap_or(0);
    Ok(UserLaunchConfig { grid: sides(&source.grid)?, block: sides(&source.block)?, dynamic_smem: shared })
}

impl ForeignKernelSet {
    fn new(
        machine: &Arc<CudaDevice>,
        kernel: &Arc<ForeignKernel>,
        problem: &ForeignProblem,
        first: &Arc<Vec<Option<Vec<u8>>>>,
    ) -> Result<Self, ZooError> {
        let (mut declared, mut arguments, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for given in problem.arguments()? {
            arguments.push(match given {
                ResolvedArgument::Value(bytes, _) => ForeignArgument::Value(bytes),
                ResolvedArgument::Buffer(buffer) => {
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
        Ok(Self { machine, kernel, declared, arguments, buffer_indices: places, initial_contents: first })
    }

    fn memory(&mut self, index: usize) -> Result<&mut native::DeviceBuffer, ZooError> {
        match self.arguments.get_mut(self.buffer_indices[index]) {
            Some(ForeignArgument::Buffer(memory)) => Ok(memory),
            _ => Err(ZooError::Device(format!("argument {index} is not a buffer"))),
        }
    }
}

impl CallBuffers for ForeignKernelSet {
    fn buffers(&self) -> &[ResolvedBuffer] {
        &self.declared
    }

    fn fill(&mut self, index: usize, byte: u8) -> Result<(), ZooError> {
        Ok(self.memory(index)?.fill(byte)?)
    }

    fn restore(&mut self, index: usize) -> Result<(), ZooError> {
        let first = self.initial_contents.clone();
        match &first[index] {
            Some(content) => Ok(self.memory(index)?.upload(content)?),
            None => Ok(()),
        }
    }

    fn read(&mut self, index: usize) -> Result<Vec<u8>, ZooError> {
        Ok(self.memory(index)?.download()?)
    }

    fn call(&mut self) -> Result<(), ZooError> {
        self.kernel.enqueue(&mut self.arguments)?;
        Ok(self.machine.synchronize()?)
    }
}

impl SetPass for ForeignKernelPass {
    type Set = ForeignKernelSet;

    fn launch(&mut self, set: &mut ForeignKernelSet) -> Result<(), ZooError> {
        Ok(set.kernel.enqueue(&mut set.arguments)?)
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(self.0.synchronize()?)
    }

    fn outputs(&mut self, set: &mut ForeignKernelSet) -> Result<Vec<Output>, ZooError> {
        call_and_read(set)
    }

    fn last_outputs(&mut self, set: &mut ForeignKernelSet) -> Result<Option<Vec<Output>>, ZooError> {
        read_last(set)
    }
}
