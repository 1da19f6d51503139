//! Workload whose launches rotate through buffer sets.

use crate::{Output, Workload, ZooError};
use std::time::Duration;

/// Pass of one backend on any of its buffer sets.
pub(crate) trait SetPass: Send {
    /// Buffers of one pass.
    type Set: Send;

    /// Enqueues one pass.
    fn launch(&mut self, set: &mut Self::Set) -> Result<(), ZooError>;

    /// Waits until all enqueued passes have completed.
    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    /// Runs one pass into memory filled with NaN and downloads its outputs.
    fn outputs(&mut self, set: &mut Self::Set) -> Result<Vec<Output>, ZooError>;

    /// Downloads the outputs of the last pass on the set, if they remain.
    fn last_outputs(&mut self, _set: &mut Self::Set) -> Result<Option<Vec<Output>>, ZooError> {
        Ok(None)
    }
}

/// Constant properties of a workload.
#[derive(Default)]
pub(crate) struct WorkloadProperties {
    pub kernel: Option<String>,
    pub weight_bytes: u64,
    pub quantization_time: Option<Duration>,
    pub may_use_tf32: bool,
}

struct RotatingWorkload<P: SetPass> {
    pass: P,
    sets: Vec<P::Set>,
    /// For each set: true after a pass on it.
    ran: Vec<bool>,
    next: usize,
    properties: WorkloadProperties,
}

/// Creates the workload from its buffer sets.
pub(crate) fn open<P: SetPass + 'static>(
    pass: P,
    sets: Vec<P::Set>,
    properties: WorkloadProperties,
) -> Box<dyn Workload> {
    let ran = vec![false; sets.len()];
    Box::new(RotatingWorkload { pass, sets, ran, next: 0, properties })
}

impl<P: SetPass> RotatingWorkload<P> {
    /// Returns the pass with its next set, and moves on to the following set.
    fn advance(&mut self) -> (&mut P, &mut P::Set) {
        let set = self.next;
        self.next = (set + 1) % self.sets.len();
        self.ran[set] = true;
        (&mut self.pass, &mut self.sets[set])
    }
}

impl<P: SetPass> Workload for RotatingWorkload<P> {
    fn launch(&mut self) -> Result<(), ZooError> {
        let (pass, set) = self.advance();
        pass.launch(set)
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        self.pass.synchronize()
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        let (pass, set) = self.advance();
        pass.outputs(set)
    }

    fn last_outputs(&mut self, set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        match self.sets.get_mut(set as usize) {
            Some(buffers) if self.ran[set as usize] => self.pass.last_outputs(buffers),
            _ => Ok(None),
        }
    }

    fn next_set(&self) -> u32 {
        self.next as u32
    }

    fn weight_bytes(&self) -> u64 {
        self.properties.weight_bytes
    }

    fn quantization_time(&self) -> Option<Duration> {
        self.properties.quantization_time
    }

    fn may_use_tf32(&self) -> bool {
        self.properties.may_use_tf32
    }

    fn kernel(&self) -> Option<String> {
        self.properties.kernel.clone()
    }
}
