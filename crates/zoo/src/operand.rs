//! What an operator reads and writes, and what its inputs are filled with.

use crate::drawn::drawn;
use crate::{Matrix, gains, loud_rows};
use calorimeter_recipes::{Codes, Dtype, Element, FloatType};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

/// Numbers of a row that a thread rounds at a time.
const PIECE: usize = 1 << 14;

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
        self.filled_with(self.drawn(seed))
    }

    /// The same for the gate alone: louder in some places than in others, where its content may be.
    pub fn gate_matrix(&self, seed: u64) -> Matrix {
        let plain = self.drawn(seed);
        self.filled_with(if self.fill.may_be_louder() {
            gains::of_operand(&plain, self.cols as usize, seed)
        } else {
            plain
        })
    }

    /// What is drawn, around zero where there is a mean.
    fn drawn(&self, seed: u64) -> Vec<f32> {
        let count = self.rows * self.cols;
        match self.fill {
            Fill::Normal | Fill::Even | Fill::Offset | Fill::Far => {
                drawn(seed, count, |_, rng| StandardNormal.sample(rng))
            }
            Fill::Around(edge) | Fill::SomeRows { edge, .. } => {
                drawn(seed, count, |_, rng| rng.random_range(-edge..edge))
            }
            Fill::Uniform(from, to) => drawn(seed, count, |_, rng| rng.random_range(from..to)),
            Fill::Below(end) => drawn(seed, count, |_, rng| rng.random_range(0..end) as f32),
        }
    }

    /// What its element type holds of these numbers, with means and quiet rows where they belong.
    fn filled_with(&self, mut values: Vec<f32>) -> Matrix {
        let (element, cols) = (self.element, self.cols as usize);
        let step = match self.fill {
            Fill::Offset => 1.0,
            Fill::Far => 25.0,
            _ => 0.0,
        };
        if let Fill::SomeRows { groups, .. } = self.fill {
            let loud = loud_rows::of(self.rows, groups);
            let quiet = |(row, _): &(usize, &mut [f32])| loud.binary_search(row).is_err();
            let rows = values.par_chunks_mut(cols.max(1)).enumerate().filter(quiet);
            rows.for_each(|(_, values)| values.iter_mut().for_each(|value| *value *= loud_rows::QUIET));
        }
        let are_held = step == 0.0 && element == Element::Float(Dtype::F32);
        if !are_held && !matches!(self.fill, Fill::Below(_)) {
            values.par_chunks_mut(cols.max(1)).enumerate().for_each(|(row, values)| {
                let mean = step * ((row % 9) as f32 - 4.0);
                // Threads share long rows.
                values.par_chunks_mut(PIECE).for_each(|values| hold(element, values, mean));
            });
        }
        Matrix { rows: self.rows as usize, cols, values: values.into() }
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

/// What the type holds of numbers once this is added.
fn hold(element: Element, values: &mut [f32], mean: f32) {
    match element {
        Element::Float(dtype) => values.iter_mut().for_each(|value| *value = dtype.round(*value + mean)),
        _ => values.iter_mut().for_each(|value| *value = element.decode(element.encode(*value + mean))),
    }
}

fn bytes(rows: u64, cols: u64, element: Element) -> u64 {
    (rows * cols * u64::from(element.bits())).div_ceil(8)
}
