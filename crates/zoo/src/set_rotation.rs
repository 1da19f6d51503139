//! Rotation of buffer sets: set i holds the inputs of set 0 rotated by i, and correct outputs rotate with them.
//!
//! An output that was written for another set then fails the comparison.

use crate::matrix::rotate_segments;
use crate::{Matrix, Operand, Output, OutputSlot, RotationAxis};
#[cfg(feature = "native")]
use calorimeter_kernels::native::LineRotation;

/// Rotation of the tensors of an operator from one buffer set to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetRotation {
    /// Number of equal parts into which each rotated tensor is divided.
    parts: u64,
    inputs: Vec<RotationAxis>,
    outputs: Vec<RotationAxis>,
}

impl SetRotation {
    /// Rotation by parts, with one axis per tensor in the order of declaration.
    pub fn new(parts: u64, inputs: &[RotationAxis], outputs: &[RotationAxis]) -> Self {
        Self { parts, inputs: inputs.to_vec(), outputs: outputs.to_vec() }
    }

    /// No rotation: all sets are identical.
    pub fn fixed() -> Self {
        Self::new(1, &[], &[])
    }

    /// Rotation for operators that work element by element or row by row.
    ///
    /// With several rows, tensors with the maximum number of rows rotate by rows. Otherwise tensors with the maximum
    /// number of columns rotate by columns. A tensor of one row or column is fixed. If any tensor has another size,
    /// nothing rotates.
    pub fn from_sizes(inputs: &[Operand], outputs: &[OutputSlot]) -> Self {
        let inputs: Vec<(u64, u64)> = inputs.iter().map(|input| (input.rows, input.cols)).collect();
        let outputs: Vec<(u64, u64)> = outputs.iter().map(|output| (output.rows, output.cols)).collect();
        let all = || inputs.iter().chain(&outputs);
        let rows = all().map(|size| size.0).max().unwrap_or(1);
        let (along, parts) = match rows {
            1 => (RotationAxis::Columns, all().map(|size| size.1).max().unwrap_or(1)),
            rows => (RotationAxis::Rows, rows),
        };
        let way = |&(rows, cols): &(u64, u64)| match if along == RotationAxis::Rows { rows } else { cols } {
            size if size == parts => Some(along),
            1 => Some(RotationAxis::Fixed),
            _ => None,
        };
        let ways = |sizes: &[(u64, u64)]| sizes.iter().map(way).collect::<Option<Vec<RotationAxis>>>();
        match (ways(&inputs), ways(&outputs)) {
            (Some(inputs), Some(outputs)) => Self { parts, inputs, outputs },
            _ => Self::fixed(),
        }
    }

    /// True if sets differ in content.
    pub fn sets_differ(&self) -> bool {
        self.parts > 1
    }

    /// Returns the inputs of a set; inputs that do not rotate are shared with set 0.
    pub fn inputs_of_set(&self, inputs: &[Matrix], set: u32) -> Vec<Matrix> {
        let moved = |(index, input): (usize, &Matrix)| {
            let (along, by) = self.input_rotation(index, [input.rows, input.cols], set);
            input.rotated(along, by)
        };
        inputs.iter().enumerate().map(moved).collect()
    }

    /// Rotates the outputs of a set back to set 0.
    pub fn rotate_back(&self, mut outputs: Vec<Output>, set: u32) -> Vec<Output> {
        for (index, output) in outputs.iter_mut().enumerate() {
            let (line, by) = self.output_rotation(index, [output.rows, output.cols], set);
            // The gate rejects an output of another size.
            if by > 0 && output.values.len() == output.rows * output.cols {
                output.values = rotate_segments(&output.values, line, line - by);
            }
        }
        outputs
    }

    /// True if the outputs of a set equal the rotated outputs of set 0, bit for bit.
    pub fn are_rotations_of(&self, outputs: &[Output], first: &[Output], set: u32) -> bool {
        let mut both = outputs.iter().zip(first).enumerate();
        outputs.len() == first.len()
            && both.all(|(index, (output, first))| {
                let (line, by) = self.output_rotation(index, [output.rows, output.cols], set);
                output.values.len() == output.rows * output.cols && output.is_rotation_of(first, line, by)
            })
    }

    /// Segment length in elements of an output, and the shift of each segment in a set.
    pub(crate) fn output_rotation(&self, output: usize, [rows, cols]: [usize; 2], set: u32) -> (usize, usize) {
        match axis_of(&self.outputs, output) {
            RotationAxis::Rows => (rows * cols, self.shift(rows, set) * cols),
            RotationAxis::Columns => (cols, self.shift(cols, set)),
            RotationAxis::Fixed => (rows * cols, 0),
        }
    }

    /// Maps a position in the output of set 1 to its position in the output of set 0.
    pub(crate) fn source_position(&self, output: usize, slot: &OutputSlot, [row, col]: [usize; 2]) -> [usize; 2] {
        let (rows, cols) = (slot.rows as usize, slot.cols as usize);
        match axis_of(&self.outputs, output) {
            RotationAxis::Rows => [(row + rows - self.shift(rows, 1)) % rows, col],
            RotationAxis::Columns => [row, (col + cols - self.shift(cols, 1)) % cols],
            RotationAxis::Fixed => [row, col],
        }
    }

    /// Rotation of an input in bytes; `None` if elements are not whole bytes.
    #[cfg(feature = "native")]
    pub(crate) fn input_rotation_in_bytes(
        &self,
        input: usize,
        size: [usize; 2],
        bytes: usize,
        set: u32,
    ) -> Option<LineRotation> {
        self.rotation_in_bytes(axis_of(&self.inputs, input), size, bytes, set)
    }

    /// Rotation of an output in bytes; `None` if elements are not whole bytes.
    #[cfg(feature = "native")]
    pub(crate) fn output_rotation_in_bytes(
        &self,
        output: usize,
        slot: &OutputSlot,
        bytes: usize,
        set: u32,
    ) -> Option<LineRotation> {
        self.rotation_in_bytes(axis_of(&self.outputs, output), [slot.rows as usize, slot.cols as usize], bytes, set)
    }

    #[cfg(feature = "native")]
    fn rotation_in_bytes(
        &self,
        along: RotationAxis,
        [rows, cols]: [usize; 2],
        bytes: usize,
        set: u32,
    ) -> Option<LineRotation> {
        if along == RotationAxis::Fixed {
            return Some(LineRotation::identity(bytes));
        }
        let width = bytes / (rows * cols).max(1);
        (width * rows * cols == bytes).then(|| match along {
            RotationAxis::Columns => {
                LineRotation { lines: rows, bytes: cols * width, shift: self.shift(cols, set) * width }
            }
            _ => LineRotation { lines: 1, bytes, shift: self.shift(rows, set) * cols * width },
        })
    }

    /// Rotation axis of an input, and the number of rows or columns by which it is rotated in a set.
    pub(crate) fn input_rotation(&self, input: usize, [rows, cols]: [usize; 2], set: u32) -> (RotationAxis, usize) {
        let along = axis_of(&self.inputs, input);
        let by = match along {
            RotationAxis::Rows => self.shift(rows, set),
            RotationAxis::Columns => self.shift(cols, set),
            RotationAxis::Fixed => 0,
        };
        (along, by)
    }

    /// Rows or columns, out of `size`, by which a set is rotated.
    fn shift(&self, size: usize, set: u32) -> usize {
        (u64::from(set) % self.parts) as usize * (size / self.parts as usize)
    }
}

fn axis_of(ways: &[RotationAxis], index: usize) -> RotationAxis {
    ways.get(index).copied().unwrap_or(RotationAxis::Fixed)
}
