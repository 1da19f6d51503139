//! Inputs and outputs of an operator, and how inputs are filled.

use crate::drawn::Drawn;
use crate::gains::OPERAND;
use crate::louder::Louder;
use crate::stream::{Law, Stream};
use crate::{Matrix, loud_rows};
use calorimeter_recipes::Element;

/// Input of an operator, as a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operand {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// Element type.
    pub element: Element,
    /// Content.
    pub fill: Fill,
}

/// Output of an operator, as a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// Element type.
    pub element: Element,
}

/// Content of an input, determined by the seed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Fill {
    /// Standard normal values.
    Normal,
    /// Standard normal values without scale factors in gate data.
    ///
    /// For inputs of exponentials and long sums, where one large value would dominate the result.
    Even,
    /// Standard normal values plus a mean per row of up to 4, so that a kernel that assumes zero mean fails.
    Offset,
    /// Standard normal values plus a mean per row of up to 100, without scale factors. Exponentials overflow or vanish
    /// in f32.
    Far,
    /// Uniform between plus and minus this value, as weights are initialized.
    Around(f32),
    /// Uniform values in a few groups of rows; all other rows are scaled by 2^-24.
    ///
    /// For gradients of computations that are too large for a full reference in double precision.
    SomeRows {
        /// Bound of the values in the outlier rows.
        edge: f32,
        /// Number of groups of 32 rows, spread over all rows.
        groups: u64,
    },
    /// Uniform between two bounds, never outside them: for variances and probabilities.
    Uniform(f32, f32),
    /// Integers from 0 to one below this value.
    Below(u32),
}

impl Fill {
    /// True if gate data may be multiplied by scale factors.
    fn may_be_louder(self) -> bool {
        match self {
            Self::Normal | Self::Offset | Self::Around(_) | Self::SomeRows { .. } => true,
            Self::Even | Self::Far | Self::Uniform(..) | Self::Below(_) => false,
        }
    }
}

impl Operand {
    /// Input with standard normal values.
    pub fn normal(rows: u64, cols: u64, element: Element) -> Self {
        Self { rows, cols, element, fill: Fill::Normal }
    }

    /// Replaces the content.
    pub fn filled(self, fill: Fill) -> Self {
        Self { fill, ..self }
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        bytes(self.rows, self.cols, self.element)
    }

    /// Creates the matrix of a seed, rounded to the element type.
    pub fn matrix(&self, seed: u64) -> Matrix {
        Matrix::drawn(self.drawn(seed))
    }

    /// Creates the matrix of a seed for the gate, with scale factors where the content allows them.
    pub fn gate_matrix(&self, seed: u64) -> Matrix {
        let louder = self.fill.may_be_louder().then(|| Louder::new(OPERAND, seed, self.cols as usize));
        Matrix::drawn(Drawn { louder, ..self.drawn(seed) })
    }

    fn drawn(&self, seed: u64) -> Drawn {
        let law = match self.fill {
            Fill::Normal | Fill::Even | Fill::Offset | Fill::Far => Law::Normal,
            Fill::Around(edge) | Fill::SomeRows { edge, .. } => Law::Between(-edge, edge),
            Fill::Uniform(from, to) => Law::Between(from, to),
            Fill::Below(end) => Law::Below(end),
        };
        let quiet = match self.fill {
            Fill::SomeRows { groups, .. } => Some((loud_rows::of(self.rows, groups), loud_rows::QUIET)),
            _ => None,
        };
        let means = match self.fill {
            Fill::Offset => 1.0,
            Fill::Far => 25.0,
            _ => 0.0,
        };
        let element = (!matches!(self.fill, Fill::Below(_))).then_some(self.element);
        let (rows, cols, stream) = (self.rows as usize, self.cols as usize, Stream::new(seed, law));
        Drawn { rows, cols, stream, louder: None, quiet, means, element }
    }
}

impl Slot {
    /// Output of the given size and element type.
    pub fn new(rows: u64, cols: u64, element: Element) -> Self {
        Self { rows, cols, element }
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        bytes(self.rows, self.cols, self.element)
    }
}

fn bytes(rows: u64, cols: u64, element: Element) -> u64 {
    (rows * cols * u64::from(element.bits())).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::Dtype;

    #[test]
    fn a_part_of_a_row_is_made_without_the_rest() {
        let fills = [Fill::Normal, Fill::Offset, Fill::Far, Fill::SomeRows { edge: 0.1, groups: 1 }, Fill::Below(7)];
        for (rows, cols) in [(67, 300), (2, 5), (1, 40_000)] {
            for fill in fills {
                for element in [Element::Float(Dtype::Bf16), Element::E4m3] {
                    let operand = Operand::normal(rows, cols, element).filled(fill);
                    let louder = || Some(Louder::new(OPERAND, 5, cols as usize));
                    let for_gate = || Drawn { louder: louder(), ..operand.drawn(5) };
                    for drawn in [operand.drawn(5), for_gate()] {
                        let (whole, cols) = (drawn.whole(), cols as usize);
                        for row in [0, 1, 66] {
                            for (first, count) in [(0, 5), (3, 290), (31, 1), (32, 65), (39_990, 10)] {
                                let Some(expected) = whole.chunks(cols).nth(row) else { continue };
                                let Some(expected) = expected.get(first..first + count) else { continue };
                                let mut found = vec![0.0; count];
                                // Created again, so that no column factors are cached.
                                let again = match drawn.louder {
                                    Some(_) => for_gate(),
                                    None => operand.drawn(5),
                                };
                                again.fill(row, first, &mut found);
                                assert_eq!(found, expected, "{operand:?} {row} {first}");
                            }
                        }
                    }
                }
            }
        }
    }
}
