//! What the gate looks at of an output: read from all of it, or told by the device that keeps it.

use crate::{Sample, Sums};

/// What to look at.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The places whose numbers are compared.
    pub sample: &'a Sample,
    /// Whether rows and columns are added up.
    pub sums: bool,
}

/// What was seen of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its rows and columns.
    pub size: [usize; 2],
    /// How many numbers came.
    pub count: usize,
    /// What is infinite or no number.
    pub spoilt: Option<Spoilt>,
    /// The sampled numbers; none where the sample lies beyond the output, or the output is spoilt.
    pub sampled: Vec<f64>,
    /// What rows and columns add up to, if that was to be looked at.
    pub sums: Option<Sums>,
}

/// Numbers that are infinite or none at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spoilt {
    /// The place of the first.
    pub at: usize,
    /// What is there.
    pub value: f32,
    /// How many there are.
    pub count: usize,
}
