//! How the content of an operator's buffer sets differs: each holds that of the first, moved on by its number, and the
//! outputs of a right kernel move with it. An output that was meant for another set is then wrong.

use crate::matrix::moved_on;
use crate::{Along, Matrix, Operand, Output, Slot};
#[cfg(feature = "cuda")]
use calorimeter_kernels::native::Circle;

/// How an operator's tensors move from one buffer set to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moves {
    /// Into how many equal parts each tensor that moves is cut; they go round in a circle.
    parts: u64,
    inputs: Vec<Along>,
    outputs: Vec<Along>,
}

impl Moves {
    /// Tensors that are cut into so many parts, in the order in which the operator declares them.
    pub fn new(parts: u64, inputs: &[Along], outputs: &[Along]) -> Self {
        Self { parts, inputs: inputs.to_vec(), outputs: outputs.to_vec() }
    }

    /// All sets are alike.
    pub fn none() -> Self {
        Self::new(1, &[], &[])
    }

    /// For what is computed element by element or row by row: where there are several rows, all tensors that have as many
    /// move by rows, else all that have as many columns by columns. What is one row or column stays. Tensors of other
    /// sizes say nothing, and then nothing moves.
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

    /// Whether two sets differ.
    pub fn differ(&self) -> bool {
        self.parts > 1
    }

    /// The inputs of a set. What does not move is shared with those of the first.
    pub fn inputs_of_set(&self, inputs: &[Matrix], set: u32) -> Vec<Matrix> {
        let moved = |(index, input): (usize, &Matrix)| {
            let (along, by) = self.of_input(index, [input.rows, input.cols], set);
            input.moved_on(along, by)
        };
        inputs.iter().enumerate().map(moved).collect()
    }

    /// Outputs of a set, as they would be on the first.
    pub fn as_of_first_set(&self, mut outputs: Vec<Output>, set: u32) -> Vec<Output> {
        for (index, output) in outputs.iter_mut().enumerate() {
            let (line, by) = self.of_output(index, [output.rows, output.cols], set);
            // One of another size is refused by the gate.
            if by > 0 && output.values.len() == output.rows * output.cols {
                output.values = moved_on(&output.values, line, line - by);
            }
        }
        outputs
    }

    /// Whether outputs of a set are those of the first, moved on.
    pub fn are_moved_on(&self, outputs: &[Output], first: &[Output], set: u32) -> bool {
        let mut both = outputs.iter().zip(first).enumerate();
        outputs.len() == first.len()
            && both.all(|(index, (output, first))| {
                let (line, by) = self.of_output(index, [output.rows, output.cols], set);
                output.values.len() == output.rows * output.cols && output.is_moved_on(first, line, by)
            })
    }

    /// Values of a line of an output of so many rows and columns, and by how many it is moved on.
    pub(crate) fn of_output(&self, output: usize, [rows, cols]: [usize; 2], set: u32) -> (usize, usize) {
        match way(&self.outputs, output) {
            Along::Rows => (rows * cols, self.by(rows, set) * cols),
            Along::Columns => (cols, self.by(cols, set)),
            Along::Nothing => (rows * cols, 0),
        }
    }

    /// Where a place of the second set's output is in the first's.
    pub(crate) fn place_before(&self, output: usize, slot: &Slot, [row, col]: [usize; 2]) -> [usize; 2] {
        let (rows, cols) = (slot.rows as usize, slot.cols as usize);
        match way(&self.outputs, output) {
            Along::Rows => [(row + rows - self.by(rows, 1)) % rows, col],
            Along::Columns => [row, (col + cols - self.by(cols, 1)) % cols],
            Along::Nothing => [row, col],
        }
    }

    /// How an input of a set of so many rows and columns moves in memory, as bytes; `None` where its numbers are not whole
    /// bytes.
    #[cfg(feature = "cuda")]
    pub(crate) fn circle_of_input(&self, input: usize, size: [usize; 2], bytes: usize, set: u32) -> Option<Circle> {
        self.circle(way(&self.inputs, input), size, bytes, set)
    }

    /// The same of an output.
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

    /// Which way an input of so many rows and columns moves, and by how many of them.
    pub(crate) fn of_input(&self, input: usize, [rows, cols]: [usize; 2], set: u32) -> (Along, usize) {
        let along = way(&self.inputs, input);
        let by = match along {
            Along::Rows => self.by(rows, set),
            Along::Columns => self.by(cols, set),
            Along::Nothing => 0,
        };
        (along, by)
    }

    /// Rows or columns, of so many, by which a set is moved on.
    fn by(&self, size: usize, set: u32) -> usize {
        (u64::from(set) % self.parts) as usize * (size / self.parts as usize)
    }
}

fn way(ways: &[Along], index: usize) -> Along {
    ways.get(index).copied().unwrap_or(Along::Nothing)
}
