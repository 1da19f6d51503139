//! Probes of an NVIDIA GPU, in CUDA C++.

use super::rotation::{Engine, Rotation};
use super::task::Task;
use super::{Probe, ProbeError, Probes};
use crate::native::{Buffer, Machine, ProbeKernel};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// The probes of one machine, on its stream.
#[derive(Debug)]
pub struct NativeProbes {
    machine: Arc<Machine>,
}

impl NativeProbes {
    /// On the machine's GPU.
    pub fn new(machine: Arc<Machine>) -> Self {
        Self { machine }
    }

    fn probe(&self, task: Task, kernel: ProbeKernel, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        Ok(Box::new(Rotation::new(Native { machine: self.machine.clone(), kernel }, task, sets)?))
    }
}

impl Probes for NativeProbes {
    fn spin(&mut self, steps: u64) -> Result<Box<dyn Probe>, ProbeError> {
        self.probe(Task::Spin { steps }, ProbeKernel::spin(&self.machine, steps)?, 1)
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        let task = Task::copy(bytes, self.machine.total_memory())?;
        self.probe(task, ProbeKernel::copy(&self.machine, task.results())?, sets)
    }

    fn read(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        let task = Task::read(bytes, self.machine.total_memory())?;
        let kernel = ProbeKernel::sum(&self.machine, (bytes / 4) as usize)?;
        self.probe(task, kernel, sets)
    }
}

struct Native {
    machine: Arc<Machine>,
    kernel: ProbeKernel,
}

impl Engine for Native {
    type Memory = Buffer;

    fn input(&self, words: Vec<u32>) -> Result<Buffer, ProbeError> {
        let bytes = words.into_par_iter().map(u32::to_ne_bytes).collect::<Vec<_>>().into_flattened();
        Ok(self.machine.upload(&bytes)?)
    }

    fn output(&self, words: usize) -> Result<Buffer, ProbeError> {
        Ok(self.machine.allocate(4 * words)?)
    }

    fn poison(&self, output: &mut Buffer) -> Result<(), ProbeError> {
        Ok(output.fill(0xff)?)
    }

    fn words<'a>(&self, output: &'a Buffer) -> Result<Cow<'a, [u32]>, ProbeError> {
        let bytes = output.download()?;
        Ok(bytes.as_chunks().0.par_iter().map(|word| u32::from_ne_bytes(*word)).collect::<Vec<_>>().into())
    }

    fn launch(&self, input: &Buffer, output: &mut Buffer) -> Result<(), ProbeError> {
        Ok(self.kernel.enqueue(input, output)?)
    }

    fn settle(&self) -> Result<(), ProbeError> {
        Ok(self.machine.synchronize()?)
    }
}
