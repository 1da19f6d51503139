//! How the content of an operator's buffer sets differs: each holds that of the first, moved on by its number, and the
//! outputs of a right kernel move with it. An output that was meant for another set is then wrong.

use crate::{Matrix, Operand, Output, Slot};

/// How an operator's tensors move from one buffer set to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moves {
    /// Into how many equal parts each tensor that moves is cut; they go round in a circle.
    parts: u64,
    inputs: Vec<Along>,
    outputs: Vec<Along>,
}

/// Which way a tensor moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Along {
    /// Its parts are whole rows.
    Rows,
    /// Its parts are whole columns.
    Columns,
    /// It is the same in every set.
    Nothing,
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
        inputs.iter().enumerate().map(|(index, input)| self.moved(input, way(&self.inputs, index), set)).collect()
    }

    /// Outputs of a set, as they would be on the first.
    pub fn as_of_first_set(&self, mut outputs: Vec<Output>, set: u32) -> Vec<Output> {
        for (index, Output { rows, cols, values }) in outputs.iter_mut().enumerate() {
            // One of another size is refused by the gate.
            if values.len() != *rows * *cols {
                continue;
            }
            match way(&self.outputs, index) {
                Along::Rows => values.rotate_left(self.by(*rows, set) * *cols),
                Along::Columns => {
                    let by = self.by(*cols, set);
                    values.chunks_mut((*cols).max(1)).for_each(|row| row.rotate_left(by));
                }
                Along::Nothing => {}
            }
        }
        outputs
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

    fn moved(&self, input: &Matrix, along: Along, set: u32) -> Matrix {
        let Matrix { rows, cols, values } = input;
        let by = match along {
            Along::Rows => self.by(*rows, set),
            Along::Columns => self.by(*cols, set),
            Along::Nothing => 0,
        };
        if by == 0 {
            return input.clone();
        }
        if along == Along::Rows {
            return input.moved_on(by);
        }
        let mut values = values.to_vec();
        values.chunks_mut(*cols).for_each(|row| row.rotate_right(by));
        Matrix { rows: *rows, cols: *cols, values: values.into() }
    }

    /// Rows or columns, of so many, by which a set is moved on.
    fn by(&self, size: usize, set: u32) -> usize {
        (u64::from(set) % self.parts) as usize * (size / self.parts as usize)
    }
}

fn way(ways: &[Along], index: usize) -> Along {
    ways.get(index).copied().unwrap_or(Along::Nothing)
}
