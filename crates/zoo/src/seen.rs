//! Digest of an output for the gate, computed from a downloaded output or on the device.

use crate::{Sample, Sums};

/// Data of an output that the gate requires.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// Elements to return.
    pub sample: &'a Sample,
    /// True if signed row and column sums are required.
    pub sums: bool,
}

/// Digest of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Rows and columns.
    pub size: [usize; 2],
    /// Number of elements.
    pub count: usize,
    /// First non-finite element and their number.
    pub spoilt: Option<Spoilt>,
    /// Sampled elements; empty if the sample exceeds the output or the output has non-finite values.
    pub sampled: Vec<f64>,
    /// Signed row and column sums, if required.
    pub sums: Option<Sums>,
}

/// Infinite and NaN elements of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spoilt {
    /// Index of the first.
    pub at: usize,
    /// Value of the first.
    pub value: f32,
    /// Number of non-finite elements.
    pub count: usize,
}
