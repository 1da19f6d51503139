//! Workload: a computation that can be launched, synchronized and read.

use crate::{OutputDigest, OutputQuery, OutputSample, ZooError};
use calorimeter_case::Clock;
use rayon::prelude::*;
use std::time::Duration;

/// Computation on a device, ready to launch. Contains no timing.
pub trait Workload: Send {
    /// Enqueues one pass.
    fn launch(&mut self) -> Result<(), ZooError>;

    /// Waits until all enqueued passes have completed.
    fn synchronize(&mut self) -> Result<(), ZooError>;

    /// Frees outputs of earlier passes that are otherwise stored until the next pass.
    fn free_outputs(&mut self) {}

    /// Runs one pass into memory filled with NaN and downloads its outputs.
    fn outputs(&mut self) -> Result<Vec<Output>, ZooError>;

    /// Checks of outputs on the device, if they can stay there; without them, the host compares the outputs.
    fn device_check(&mut self) -> Option<&mut dyn DeviceCheck> {
        None
    }

    /// Downloads the outputs of the last pass on `set`. `None` if there was no pass or its outputs are gone.
    fn last_outputs(&mut self, _set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        Ok(None)
    }

    /// Buffer set of the next pass; 0 if the sets do not differ.
    fn next_set(&self) -> u32 {
        0
    }

    /// Runs one pass and downloads its last output; for computations with a single output.
    fn output(&mut self) -> Result<Output, ZooError> {
        self.outputs()?.pop().ok_or_else(|| ZooError::Device("the pass produced no output".into()))
    }

    /// Bytes of the weights on the device.
    fn weight_bytes(&self) -> u64 {
        0
    }

    /// Host time to prune and quantize the weights, if they are.
    fn quantization_time(&self) -> Option<Duration> {
        None
    }

    /// True if tensor cores may round f32 operands, including dequantized ones, to TF32.
    fn may_use_tf32(&self) -> bool {
        false
    }

    /// True if the kernels skip the zeros of pruned weights.
    fn skips_zeros(&self) -> bool {
        false
    }

    /// True if each launch starts another process and waits for it.
    fn is_process(&self) -> bool {
        false
    }

    /// Names of the kernels, if known.
    fn kernel(&self) -> Option<String> {
        None
    }

    /// Passes that another process runs and times. `None` if this process runs the passes.
    fn remote_passes(&mut self) -> Option<&mut dyn RemotePasses> {
        None
    }
}

/// Passes of a workload in another process, which times them.
pub trait RemotePasses {
    /// Name of the clock that the other process uses as a kind of clock.
    fn clock_name(&mut self, clock: Clock) -> Result<String, ZooError>;

    /// Runs passes and returns their duration in nanoseconds, as measured by the other process.
    fn time(&mut self, passes: u32, clock: Clock) -> Result<u64, ZooError>;

    /// Runs passes and returns the names and calls of the kernels that the device executed.
    fn kernel_calls(&mut self, passes: u32) -> Result<Vec<(String, u64)>, ZooError>;
}

/// Checks of outputs that stay on the device. The first checked outputs of set 0 are the reference for all others.
pub trait DeviceCheck {
    /// Runs one pass into memory filled with NaN and computes digests of its outputs on the device.
    ///
    /// `None`, without running a pass, if outputs can only be downloaded whole.
    fn output_digests(&mut self, looks: &[OutputQuery<'_>]) -> Result<Option<Vec<OutputDigest>>, ZooError>;

    /// Downloads the reference outputs.
    fn reference_outputs(&mut self) -> Result<Option<Vec<Output>>, ZooError>;

    /// Compares the last outputs of `set`, rotated back by its offset, bit for bit with the reference outputs.
    ///
    /// `None` if unsupported or not run.
    fn matches_reference(&mut self, set: u32) -> Result<Option<bool>, ZooError>;

    /// Runs one pass into memory filled with NaN and compares its outputs with the reference outputs, bit for bit.
    ///
    /// The outputs can be downloaded afterwards. `None`, without a pass, if the reference is missing.
    fn run_and_match(&mut self) -> Result<Option<bool>, ZooError>;
}

/// Output in host memory.
#[derive(Debug, Clone)]
pub struct Output {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Row-major values.
    pub values: Vec<f32>,
}

impl PartialEq for Output {
    fn eq(&self, other: &Self) -> bool {
        self.is_rotation_of(other, self.values.len(), 0)
    }
}

impl Output {
    /// True if each segment of `line` values equals the segment of `other`, rotated by `by`.
    pub(crate) fn is_rotation_of(&self, other: &Self, line: usize, by: usize) -> bool {
        const SHARE: usize = 1 << 16;
        let size = |output: &Self| (output.rows, output.cols, output.values.len());
        let same = |one: &[f32], other: &[f32]| {
            one.par_chunks(SHARE).zip(other.par_chunks(SHARE)).all(|(one, other)| one == other)
        };
        let lines = || self.values.par_chunks(line).zip(other.values.par_chunks(line));
        let moved = |(one, other): (&[f32], &[f32])| {
            let (before, after) = other.split_at(other.len() - by);
            same(&one[..by], after) && same(&one[by..], before)
        };
        size(self) == size(other) && (line == 0 || lines().all(moved))
    }

    /// Returns the sampled values in double precision.
    pub fn sampled(&self, sample: &OutputSample) -> Vec<f64> {
        sample.map_elements(|row, col| f64::from(self.values[row * self.cols + col]))
    }
}
