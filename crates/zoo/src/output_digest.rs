//! Digest of an output for the gate, computed from a downloaded output or on the device.

use crate::{OutputSample, SignedSums};

/// Data of an output that the gate requires.
#[derive(Debug, Clone, Copy)]
pub struct OutputQuery<'a> {
    /// Elements to return.
    pub sample: &'a OutputSample,
    /// True if signed row and column sums are required.
    pub sums: bool,
}

/// Digest of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputDigest {
    /// Rows and columns.
    pub size: [usize; 2],
    /// Number of elements.
    pub count: usize,
    /// First non-finite element and their number.
    pub non_finite: Option<NonFinite>,
    /// Sampled elements; empty if the sample exceeds the output or the output has non-finite values.
    pub sampled: Vec<f64>,
    /// Signed row and column sums, if required.
    pub sums: Option<SignedSums>,
}

/// Infinite and NaN elements of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NonFinite {
    /// Index of the first.
    pub index: usize,
    /// Value of the first.
    pub value: f32,
    /// Number of non-finite elements.
    pub count: usize,
}
