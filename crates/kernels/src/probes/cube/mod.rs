//! Probes of devices that CubeCL supports.

#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod kernels;

use super::pattern::{self, POISON};
use super::rotating_probe::{ProbeEngine, RotatingProbe};
use super::task::ProbeTask;
use super::{Probe, ProbeError, Probes};
use cubecl::Runtime;
use cubecl::client::ComputeClient;
use kernels::WordBuffer;
use std::borrow::Cow;

/// Probes of one device through CubeCL, with identical kernels on CUDA, Vulkan, Metal and WebGPU.
///
/// Create, launch, synchronize and check a probe on one thread: CubeCL has one stream per thread and waits only for the
/// caller's. CubeCL does not report failed launches and allocations, and Mesa's software adapter ends a spin after
/// about eight million steps; the check detects both.
pub struct CubeProbes<R: Runtime> {
    client: ComputeClient<R>,
}

impl<R: Runtime> CubeProbes<R> {
    /// Creates the probes of the client's device.
    pub fn new(client: ComputeClient<R>) -> Self {
        Self { client }
    }

    fn max_buffer_bytes(&self) -> u64 {
        self.client.properties().memory.max_page_size
    }

    fn probe(&self, task: ProbeTask, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        Ok(Box::new(RotatingProbe::new(CubeEngine { client: self.client.clone(), task }, task, sets)?))
    }
}

impl<R: Runtime> Probes for CubeProbes<R> {
    fn spin(&mut self, steps: u64) -> Result<Box<dyn Probe>, ProbeError> {
        let limit = u64::from(u32::MAX);
        if steps > limit {
            return Err(ProbeError::TooManySteps { steps, limit });
        }
        self.probe(ProbeTask::Spin { steps }, 1)
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        self.probe(ProbeTask::copy(bytes, self.max_buffer_bytes())?, sets)
    }

    fn read(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        self.probe(ProbeTask::read(bytes, self.max_buffer_bytes())?, sets)
    }
}

struct CubeEngine<R: Runtime> {
    client: ComputeClient<R>,
    task: ProbeTask,
}

impl<R: Runtime> ProbeEngine for CubeEngine<R> {
    type Memory = WordBuffer;

    fn input(&self, words: Vec<u32>) -> Result<WordBuffer, ProbeError> {
        Ok(WordBuffer::upload(&self.client, &words))
    }

    fn output(&self, words: usize) -> Result<WordBuffer, ProbeError> {
        Ok(WordBuffer::allocate(&self.client, words))
    }

    /// Replaces the buffer: a kernel that fills it might be skipped together with the one to be checked.
    fn poison(&self, output: &mut WordBuffer) -> Result<(), ProbeError> {
        *output = self.input(pattern::fill_words(output.len(), |_| POISON)?)?;
        Ok(())
    }

    fn words<'a>(&self, output: &'a WordBuffer) -> Result<Cow<'a, [u32]>, ProbeError> {
        output.download(&self.client).map(Cow::Owned)
    }

    fn launch(&self, input: &WordBuffer, output: &mut WordBuffer) -> Result<(), ProbeError> {
        match self.task {
            ProbeTask::Spin { steps } => kernels::spin(&self.client, input, output, steps as u32),
            ProbeTask::Copy { .. } => kernels::copy(&self.client, input, output),
            ProbeTask::Read { .. } => kernels::sum(&self.client, input, output),
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<(), ProbeError> {
        cubecl::future::block_on(self.client.sync())
            .map_err(|error| ProbeError::Cube { doing: "launched work", status: format!("{error:?}") })
    }
}
