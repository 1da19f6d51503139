//! What an operator reads and writes, and what its inputs are filled with.

use crate::drawn::Drawn;
use crate::gains::OPERAND;
use crate::louder::Louder;
use crate::stream::{Law, Stream};
use crate::{Matrix, loud_rows};
use calorimeter_recipes::Element;

/// An input of an operator, as a matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operand {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// What its numbers are stored as.
    pub element: Element,
    /// Its content.
    pub fill: Fill,
}

/// An output of an operator, as a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// What its numbers are stored as.
    pub element: Element,
}

/// Content of an input: the same for the same seed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Fill {
    /// Standard normal numbers.
    Normal,
    /// Standard normal numbers that are nowhere louder: of exponentials of louder ones a single one would be left, and of a
    /// sum with a louder one the roundings.
    Even,
    /// Standard normal numbers around a mean that differs from row to row, up to 4: a kernel that takes the mean for zero
    /// is found out.
    Offset,
    /// The same with means up to 100, nowhere louder: exponentials of such numbers overflow and vanish in f32.
    Far,
    /// Within plus and minus this, evenly, as weights are.
    Around(f32),
    /// The same in so many groups of rows, and in the others so little that no sum hears it: for gradients of what is too
    /// large to be computed whole in double precision.
    SomeRows {
        /// Of the loud rows.
        edge: f32,
        /// Of 32 rows each, spread over all.
        groups: u64,
    },
    /// From the first to the second, evenly; no number is ever beyond, as is right for variances and probabilities.
    Uniform(f32, f32),
    /// Whole numbers from 0 to below this.
    Below(u32),
}

impl Fill {
    /// Whether the gate may make what is drawn louder or quieter in places.
    fn may_be_louder(self) -> bool {
        match self {
            Self::Normal | Self::Offset | Self::Around(_) | Self::SomeRows { .. } => true,
            Self::Even | Self::Far | Self::Uniform(..) | Self::Below(_) => false,
        }
    }
}

impl Operand {
    /// Standard normal numbers.
    pub fn normal(rows: u64, cols: u64, element: Element) -> Self {
        Self { rows, cols, element, fill: Fill::Normal }
    }

    /// The same with another content.
    pub fn filled(self, fill: Fill) -> Self {
        Self { fill, ..self }
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        bytes(self.rows, self.cols, self.element)
    }

    /// Its numbers, each one that the element type holds exactly.
    pub fn matrix(&self, seed: u64) -> Matrix {
        Matrix::drawn(self.drawn(seed))
    }

    /// The same for the gate alone: louder in some places than in others, where its content may be.
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
    /// A matrix of numbers of a type.
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
                                // Anew, so that no gains of columns are shared.
                                let anew = match drawn.louder {
                                    Some(_) => for_gate(),
                                    None => operand.drawn(5),
                                };
                                anew.fill(row, first, &mut found);
                                assert_eq!(found, expected, "{operand:?} {row} {first}");
                            }
                        }
                    }
                }
            }
        }
    }
}
