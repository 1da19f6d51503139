//! Something that can be launched, waited for and read.

use crate::{Look, Sample, Seen, ZooError};
use rayon::prelude::*;
use std::time::Duration;

/// A problem made runnable. It knows nothing of clocks.
pub trait Workload: Send {
    /// Enqueues one forward pass.
    fn launch(&mut self) -> Result<(), ZooError>;

    /// Waits until every pass has run.
    fn settle(&mut self) -> Result<(), ZooError>;

    /// Frees the outputs of earlier passes, where they are kept until the next ones are there.
    fn forget(&mut self) {}

    /// Runs one pass into memory filled with NaN and reads its outputs.
    fn outputs(&mut self) -> Result<Vec<Output>, ZooError>;

    /// Runs one pass into memory filled with NaN and looks at what it left, where that is. `None` where outputs can only be
    /// read whole; then no pass is run.
    fn seen(&mut self, _looks: &[Look<'_>]) -> Result<Option<Vec<Seen>>, ZooError> {
        Ok(None)
    }

    /// Reads the first outputs of all that were looked at, those of the first set.
    fn first(&mut self) -> Result<Option<Vec<Output>>, ZooError> {
        Ok(None)
    }

    /// Reads the outputs that the last pass on a buffer set left, where there was one and they are still there.
    fn kept(&mut self, _set: u32) -> Result<Option<Vec<Output>>, ZooError> {
        Ok(None)
    }

    /// Whether what the last pass on a buffer set left has, moved on, the bits of the first outputs that were read of all,
    /// those of the first set. `None` where the device cannot tell, or nothing is there.
    fn is_like_first(&mut self, _set: u32) -> Result<Option<bool>, ZooError> {
        Ok(None)
    }

    /// Runs one pass into memory filled with NaN and answers the same of what it left, which stays to be read. Where that
    /// cannot be told no pass is run.
    fn passes_like_first(&mut self) -> Result<Option<bool>, ZooError> {
        Ok(None)
    }

    /// The buffer set that the next pass runs on, where they differ in content.
    fn next_set(&self) -> u32 {
        0
    }

    /// Its only output.
    fn output(&mut self) -> Result<Output, ZooError> {
        self.outputs()?.pop().ok_or_else(|| ZooError::Device("the pass left no output".into()))
    }

    /// Bytes of its weights on the device.
    fn weight_bytes(&self) -> u64;

    /// How long the host took to prune and quantize its weights, if they are.
    fn quantizing(&self) -> Option<Duration> {
        None
    }

    /// Whether f32 factors, given or made of codes, may be rounded to TF32 on their way into tensor cores.
    fn may_use_tf32(&self) -> bool {
        false
    }

    /// Whether the zeros of its pruned weights are left out of every product.
    fn skips_zeros(&self) -> bool {
        false
    }

    /// Whether another process works, which this one starts and waits for.
    fn is_a_process(&self) -> bool {
        false
    }

    /// Which kernel was chosen, where that is known.
    fn kernel(&self) -> Option<String> {
        None
    }
}

/// An output read back to the host.
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
        self.is_moved_on(other, self.values.len(), 0)
    }
}

impl Output {
    /// Whether it is another one, each line of so many values of which was moved on by some of them.
    pub(crate) fn is_moved_on(&self, other: &Self, line: usize, by: usize) -> bool {
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

    /// The sampled values in double precision.
    pub fn sampled(&self, sample: &Sample) -> Vec<f64> {
        sample.by_elements(|row, col| f64::from(self.values[row * self.cols + col]))
    }
}
