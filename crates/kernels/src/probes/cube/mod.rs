//! Probes of the devices that CubeCL drives.

#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod kernels;

use super::pattern::{self, POISON};
use super::rotation::{Engine, Rotation};
use super::task::Task;
use super::{Probe, ProbeError, Probes};
use cubecl::Runtime;
use cubecl::client::ComputeClient;
use kernels::Words;
use std::borrow::Cow;

/// The probes of one device through CubeCL, with the same kernels on CUDA, Vulkan, Metal and WebGPU.
///
/// Make, launch, settle and check a probe on one thread: CubeCL has a stream for each, and waits for the caller's only.
/// It keeps failed launches and allocations to itself as well, and Mesa's software adapter ends a spin after some eight
/// million steps; what should have been computed does not pass its check then.
pub struct CubeProbes<R: Runtime> {
    client: ComputeClient<R>,
}

impl<R: Runtime> CubeProbes<R> {
    /// On the client's device.
    pub fn new(client: ComputeClient<R>) -> Self {
        Self { client }
    }

    fn largest(&self) -> u64 {
        self.client.properties().memory.max_page_size
    }

    fn probe(&self, task: Task, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        Ok(Box::new(Rotation::new(Cube { client: self.client.clone(), task }, task, sets)?))
    }
}

impl<R: Runtime> Probes for CubeProbes<R> {
    fn spin(&mut self, steps: u64) -> Result<Box<dyn Probe>, ProbeError> {
        let limit = u64::from(u32::MAX);
        if steps > limit {
            return Err(ProbeError::TooManySteps { steps, limit });
        }
        self.probe(Task::Spin { steps }, 1)
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        self.probe(Task::copy(bytes, self.largest())?, sets)
    }

    fn read(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        self.probe(Task::read(bytes, self.largest())?, sets)
    }
}

struct Cube<R: Runtime> {
    client: ComputeClient<R>,
    task: Task,
}

impl<R: Runtime> Engine for Cube<R> {
    type Memory = Words;

    fn input(&self, words: Vec<u32>) -> Result<Words, ProbeError> {
        Ok(Words::upload(&self.client, &words))
    }

    fn output(&self, words: usize) -> Result<Words, ProbeError> {
        Ok(Words::allocate(&self.client, words))
    }

    /// Replaces the memory: a kernel that filled it might be skipped together with the one to be checked.
    fn poison(&self, output: &mut Words) -> Result<(), ProbeError> {
        *output = self.input(pattern::filled(output.len(), |_| POISON)?)?;
        Ok(())
    }

    fn words<'a>(&self, output: &'a Words) -> Result<Cow<'a, [u32]>, ProbeError> {
        output.download(&self.client).map(Cow::Owned)
    }

    fn launch(&self, input: &Words, output: &mut Words) -> Result<(), ProbeError> {
        match self.task {
            Task::Spin { steps } => kernels::spin(&self.client, input, output, steps as u32),
            Task::Copy { .. } => kernels::copy(&self.client, input, output),
            Task::Read { .. } => kernels::sum(&self.client, input, output),
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), ProbeError> {
        cubecl::future::block_on(self.client.sync())
            .map_err(|error| ProbeError::Cube { doing: "launched work", status: format!("{error:?}") })
    }
}
