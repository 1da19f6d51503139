//! Inputs and outputs of an operator, and how inputs are filled.

use crate::gate_data::OPERAND_PATTERN;
use crate::random_matrix::RandomMatrix;
use crate::scale_factors::ScaleFactors;
use crate::stream::{Distribution, RandomStream};
use crate::{ImageLayout, Matrix, outlier_rows};
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
    /// Layout of images or of the filters of a convolution, if the matrix contains them.
    pub images: Option<ImageLayout>,
}

/// Output of an operator, as a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputSlot {
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// Element type.
    pub element: Element,
    /// Layout of images, if the matrix contains them.
    pub images: Option<ImageLayout>,
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
    NormalUnscaled,
    /// Standard normal values plus a mean per row of up to 4, so that a kernel that assumes zero mean fails.
    NormalWithMeans,
    /// Standard normal values plus a mean per row of up to 100, without scale factors. Exponentials overflow or vanish
    /// in f32.
    NormalWithLargeMeans,
    /// Uniform between plus and minus this value, as weights are initialized.
    Symmetric(f32),
    /// Uniform values in a few groups of rows; all other rows are scaled by 2^-24.
    ///
    /// For gradients of computations that are too large for a full reference in double precision.
    OutlierRows {
        /// Bound of the values in the outlier rows.
        bound: f32,
        /// Number of groups of 32 rows, spread over all rows.
        groups: u64,
    },
    /// Uniform between two bounds, never outside them: for variances and probabilities.
    Uniform(f32, f32),
    /// Integers from 0 to one below this value.
    IntegersBelow(u32),
}

impl Fill {
    /// True if gate data may be multiplied by scale factors.
    fn allows_scaling(self) -> bool {
        match self {
            Self::Normal | Self::NormalWithMeans | Self::Symmetric(_) | Self::OutlierRows { .. } => true,
            Self::NormalUnscaled | Self::NormalWithLargeMeans | Self::Uniform(..) | Self::IntegersBelow(_) => false,
        }
    }
}

impl Operand {
    /// Input with standard normal values.
    pub fn normal(rows: u64, cols: u64, element: Element) -> Self {
        Self { rows, cols, element, fill: Fill::Normal, images: None }
    }

    /// States that the matrix contains images.
    pub fn with_images(self, layout: ImageLayout) -> Self {
        Self { images: Some(layout), ..self }
    }

    /// Replaces the content.
    pub fn with_fill(self, fill: Fill) -> Self {
        Self { fill, ..self }
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> u64 {
        bytes(self.rows, self.cols, self.element)
    }

    /// Creates the matrix of a seed, rounded to the element type.
    pub fn matrix(&self, seed: u64) -> Matrix {
        Matrix::from_random(self.random_matrix(seed))
    }

    /// Creates the matrix of a seed for the gate, with scale factors where the content allows them.
    pub fn gate_matrix(&self, seed: u64) -> Matrix {
        let louder = self.fill.allows_scaling().then(|| ScaleFactors::new(OPERAND_PATTERN, seed, self.cols as usize));
        Matrix::from_random(RandomMatrix { scale_factors: louder, ..self.random_matrix(seed) })
    }

    fn random_matrix(&self, seed: u64) -> RandomMatrix {
        let law = match self.fill {
            Fill::Normal | Fill::NormalUnscaled | Fill::NormalWithMeans | Fill::NormalWithLargeMeans => {
                Distribution::Normal
            }
            Fill::Symmetric(edge) | Fill::OutlierRows { bound: edge, .. } => Distribution::Uniform(-edge, edge),
            Fill::Uniform(from, to) => Distribution::Uniform(from, to),
            Fill::IntegersBelow(end) => Distribution::IntegersBelow(end),
        };
        let quiet = match self.fill {
            Fill::OutlierRows { groups, .. } => {
                Some((outlier_rows::select_rows(self.rows, groups), outlier_rows::ATTENUATION))
            }
            _ => None,
        };
        let means = match self.fill {
            Fill::NormalWithMeans => 1.0,
            Fill::NormalWithLargeMeans => 25.0,
            _ => 0.0,
        };
        let element = (!matches!(self.fill, Fill::IntegersBelow(_))).then_some(self.element);
        let (rows, cols, stream) = (self.rows as usize, self.cols as usize, RandomStream::new(seed, law));
        RandomMatrix { rows, cols, stream, scale_factors: None, outlier_rows: quiet, mean_step: means, element }
    }
}

impl OutputSlot {
    /// Output of the given size and element type.
    pub fn new(rows: u64, cols: u64, element: Element) -> Self {
        Self { rows, cols, element, images: None }
    }

    /// States that the matrix contains images.
    pub fn with_images(self, layout: ImageLayout) -> Self {
        Self { images: Some(layout), ..self }
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
    fn parts_of_rows_equal_the_whole() {
        let fills = [
            Fill::Normal,
            Fill::NormalWithMeans,
            Fill::NormalWithLargeMeans,
            Fill::OutlierRows { bound: 0.1, groups: 1 },
            Fill::IntegersBelow(7),
        ];
        for (rows, cols) in [(67, 300), (2, 5), (1, 40_000)] {
            for fill in fills {
                for element in [Element::Float(Dtype::Bf16), Element::E4m3] {
                    let operand = Operand::normal(rows, cols, element).with_fill(fill);
                    let louder = || Some(ScaleFactors::new(OPERAND_PATTERN, 5, cols as usize));
                    let for_gate = || RandomMatrix { scale_factors: louder(), ..operand.random_matrix(5) };
                    for drawn in [operand.random_matrix(5), for_gate()] {
                        let (whole, cols) = (drawn.all_elements(), cols as usize);
                        for row in [0, 1, 66] {
                            for (first, count) in [(0, 5), (3, 290), (31, 1), (32, 65), (39_990, 10)] {
                                let Some(expected) = whole.chunks(cols).nth(row) else { continue };
                                let Some(expected) = expected.get(first..first + count) else { continue };
                                let mut found = vec![0.0; count];
                                // Created again, so that no column factors are cached.
                                let again = match drawn.scale_factors {
                                    Some(_) => for_gate(),
                                    None => operand.random_matrix(5),
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
