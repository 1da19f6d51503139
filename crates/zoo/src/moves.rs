//! Rotation of buffer sets: set i holds the inputs of set 0 rotated by i, and correct outputs rotate with them.
//!
//! An output that was written for another set then fails the comparison.

use crate::matrix::moved_on;
use crate::{Along, Matrix, Operand, Output, Slot};
#[cfg(feature = "cuda")]
use calorimeter_kernels::native::Circle;

/// Rotation of the tensors of an operator from one buffer set to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moves {
    /// Number of equal parts into which each rotated tensor is divided.
    parts: u64,
    inputs: Vec<Along>,
    outputs: Vec<Along>,
}

impl Moves {
    /// Rotation by parts, with one axis per tensor in the order of declaration.
    pub fn new(parts: u64, inputs: &[Along], outputs: &[Along]) -> Self {
        Self { parts, inputs: inputs.to_vec(), outputs: outputs.to_vec() }
    }

    /// No rotation: all sets are identical.
    pub fn none() -> Self {
        Self::new(1, &[], &[])
    }

    /// Rotation for operators that work element by element or row by row.
    ///
    /// With several rows, tensors with the maximum number of rows rotate by rows. Otherwise tensors with the maximum
    /// number of columns rotate by columns. A tensor of one row or column is fixed. If any tensor has another size,
    /// nothing rotates.
    pub fn by_size(inputs: &[Operand], outputs: &[Slot]) -> Self {
        let inputs: Vec<(u64, u64)> = inputs.iter().map(|input| (input.rows, input.cols)).collect();
        let outputs: Vec<(u64, u64)> = outputs.iter().map(|output| (output.rows, output.cols)).collect();
        let all = || inputs.iter().chain(&outputs);
        let rows = all().map(|size| size.0).max().unwrap_or(1);
        let (along, parts) = match rows {
            1 => (Along::Columns, all().map(|size| size.1).max().unwrap_or(1)),
            rows => (Along::Rows, rows),
        };
        let way = |&(rows, cols): &(u64, u64)| match if along == Along::Rows { rows } else { cols } {
            size if size == parts => Some(along),
            1 => Some(Along::Nothing),
            _ => None,
        };
        let ways = |sizes: &[(u64, u64)]| sizes.iter().map(way).collect::<Option<Vec<Along>>>();
        match (ways(&inputs), ways(&outputs)) {
            (Some(inputs), Some(outputs)) => Self { parts, inputs, outputs },
            _ => Self::none(),
        }
    }

    /// True if sets differ in content.
    pub fn differ(&self) -> bool {
        self.parts > 1
    }

    /// Returns the inputs of a set; inputs that do not rotate are shared with set 0.
    pub fn inputs_of_set(&self, inputs: &[Matrix], set: u32) -> Vec<Matrix> {
        let moved = |(index, input): (usize, &Matrix)| {
            let (along, by) = self.of_input(index, [input.rows, input.cols], set);
            input.moved_on(along, by)
        };
        inputs.iter().enumerate().map(moved).collect()
    }

    /// Rotates the outputs of a set back to set 0.
    pub fn as_of_first_set(&self, mut outputs: Vec<Output>, set: u32) -> Vec<Output> {
        for (index, output) in outputs.iter_mut().enumerate() {
            let (line, by) = self.of_output(index, [output.rows, output.cols], set);
            // The gate rejects an output of another size.
            if by > 0 && output.values.len() == output.rows * output.cols {
                output.values = moved_on(&output.values, line, line - by);
            }
        }
        outputs
    }

    /// True if the outputs of a set equal the rotated outputs of set 0, bit for bit.
    pub fn are_moved_on(&self, outputs: &[Output], first: &[Output], set: u32) -> bool {
        let mut both = outputs.iter().zip(first).enumerate();
        outputs.len() == first.len()
            && both.all(|(index, (output, first))| {
                let (line, by) = self.of_output(index, [output.rows, output.cols], set);
                output.values.len() == output.rows * output.cols && output.is_moved_on(first, line, by)
            })
    }

    /// Segment length in elements of an output, and the shift of each segment in a set.
    pub(crate) fn of_output(&self, output: usize, [rows, cols]: [usize; 2], set: u32) -> (usize, usize) {
        match way(&self.outputs, output) {
            Along::Rows => (rows * cols, self.by(rows, set) * cols),
            Along::Columns => (cols, self.by(cols, set)),
            Along::Nothing => (rows * cols, 0),
        }
    }

    /// Maps a position in the output of set 1 to its position in the output of set 0.
    pub(crate) fn place_before(&self, output: usize, slot: &Slot, [row, col]: [usize; 2]) -> [usize; 2] {
        let (rows, cols) = (slot.rows as usize, slot.cols as usize);
        match way(&self.outputs, output) {
            Along::Rows => [(row + rows - self.by(rows, 1)) % rows, col],
            Along::Columns => [row, (col + cols - self.by(cols, 1)) % cols],
            Along::Nothing => [row, col],
        }
    }

    /// Rotation of an input in bytes; `None` if elements are not whole bytes.
    #[cfg(feature = "cuda")]
    pub(crate) fn circle_of_input(&self, input: usize, size: [usize; 2], bytes: usize, set: u32) -> Option<Circle> {
        self.circle(way(&self.inputs, input), size, bytes, set)
    }

    /// Rotation of an output in bytes; `None` if elements are not whole bytes.
    #[cfg(feature = "cuda")]
    pub(crate) fn circle_of_output(&self, output: usize, slot: &Slot, bytes: usize, set: u32) -> Option<Circle> {
        self.circle(way(&self.outputs, output), [slot.rows as usize, slot.cols as usize], bytes, set)
    }

    #[cfg(feature = "cuda")]
    fn circle(&self, along: Along, [rows, cols]: [usize; 2], bytes: usize, set: u32) -> Option<Circle> {
        if along == Along::Nothing {
            return Some(Circle::still(bytes));
        }
        let width = bytes / (rows * cols).max(1);
        (width * rows * cols == bytes).then(|| match along {
            Along::Columns => Circle { lines: rows, bytes: cols * width, by: self.by(cols, set) * width },
            _ => Circle { lines: 1, bytes, by: self.by(rows, set) * cols * width },
        })
    }

    /// Rotation axis of an input, and the number of rows or columns by which it is rotated in a set.
    pub(crate) fn of_input(&self, input: usize, [rows, cols]: [usize; 2], set: u32) -> (Along, usize) {
        let along = way(&self.inputs, input);
        let by = match along {
            Along::Rows => self.by(rows, set),
            Along::Columns => self.by(cols, set),
            Along::Nothing => 0,
        };
        (along, by)
    }

    /// Rows or columns, out of `size`, by which a set is rotated.
    fn by(&self, size: usize, set: u32) -> usize {
        (u64::from(set) % self.parts) as usize * (size / self.parts as usize)
    }
}

fn way(ways: &[Along], index: usize) -> Along {
    ways.get(index).copied().unwrap_or(Along::Nothing)
}
