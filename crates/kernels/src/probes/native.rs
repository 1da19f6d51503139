//! Probes of an NVIDIA GPU, in CUDA C++.

use super::rotating_probe::{ProbeEngine, RotatingProbe};
use super::task::ProbeTask;
use super::{Probe, ProbeError, Probes};
use crate::native::{CudaDevice, CudaKernel, DeviceBuffer};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;

/// Probes of one CUDA device, on its stream.
#[derive(Debug)]
pub struct NativeProbes {
    device: Arc<CudaDevice>,
}

impl NativeProbes {
    /// Creates the probes of a device.
    pub fn new(device: Arc<CudaDevice>) -> Self {
        Self { device }
    }

    fn probe(&self, task: ProbeTask, kernel: CudaKernel, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        Ok(Box::new(RotatingProbe::new(NativeEngine { device: self.device.clone(), kernel }, task, sets)?))
    }
}

impl Probes for NativeProbes {
    fn spin(&mut self, steps: u64) -> Result<Box<dyn Probe>, ProbeError> {
        self.probe(ProbeTask::Spin { steps }, CudaKernel::probe_spin(&self.device, steps)?, 1)
    }

    fn copy(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        let task = ProbeTask::copy(bytes, self.device.total_memory())?;
        self.probe(task, CudaKernel::probe_copy(&self.device, task.results())?, sets)
    }

    fn read(&mut self, bytes: u64, sets: u32) -> Result<Box<dyn Probe>, ProbeError> {
        let task = ProbeTask::read(bytes, self.device.total_memory())?;
        let kernel = CudaKernel::probe_sum(&self.device, (bytes / 4) as usize)?;
        self.probe(task, kernel, sets)
    }
}

struct NativeEngine {
    device: Arc<CudaDevice>,
    kernel: CudaKernel,
}

impl ProbeEngine for NativeEngine {
    type Memory = DeviceBuffer;

    fn input(&self, words: Vec<u32>) -> Result<DeviceBuffer, ProbeError> {
        let bytes = words.into_par_iter().map(u32::to_ne_bytes).collect::<Vec<_>>().into_flattened();
        Ok(self.device.upload(&bytes)?)
    }

    fn output(&self, words: usize) -> Result<DeviceBuffer, ProbeError> {
        Ok(self.device.allocate(4 * words)?)
    }

    fn poison(&self, output: &mut DeviceBuffer) -> Result<(), ProbeError> {
        Ok(output.fill(0xff)?)
    }

    fn words<'a>(&self, output: &'a DeviceBuffer) -> Result<Cow<'a, [u32]>, ProbeError> {
        let bytes = output.download()?;
        Ok(bytes.as_chunks().0.par_iter().map(|word| u32::from_ne_bytes(*word)).collect::<Vec<_>>().into())
    }

    fn launch(&self, input: &DeviceBuffer, output: &mut DeviceBuffer) -> Result<(), ProbeError> {
        Ok(self.kernel.enqueue([input], [output])?)
    }

    fn synchronize(&self) -> Result<(), ProbeError> {
        Ok(self.device.synchronize()?)
    }
}
