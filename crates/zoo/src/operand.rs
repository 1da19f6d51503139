//! What an operator reads and writes, and what its inputs are filled with.

use crate::Matrix;
use crate::problem::filled;
use calorimeter_recipes::Codes;
use calorimeter_recipes::Element;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

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
pub enum Fill {
    /// Standard normal numbers.
    Normal,
    /// Standard normal numbers around a mean that differs from row to row, up to 4: a kernel that takes the mean for zero
    /// is found out.
    Offset,
    /// The same with means up to 100: exponentials of such numbers overflow and vanish in f32.
    Far,
    /// From the first to the second, evenly.
    Uniform(f32, f32),
    /// Whole numbers from 0 to below this.
    Below(u32),
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
        let (element, cols) = (self.element, self.cols);
        let exactly = |number: f32| element.decode(element.encode(number));
        let around = |step: f32| {
            filled(seed, self.rows * cols, |index, rng| {
                let normal: f32 = StandardNormal.sample(rng);
                exactly(normal + step * (((index / cols) % 9) as f32 - 4.0))
            })
        };
        let values = match self.fill {
            Fill::Normal => filled(seed, self.rows * cols, |_, rng| exactly(StandardNormal.sample(rng))),
            Fill::Offset => around(1.0),
            Fill::Far => around(25.0),
            Fill::Uniform(from, to) => filled(seed, self.rows * cols, |_, rng| exactly(rng.random_range(from..to))),
            Fill::Below(end) => filled(seed, self.rows * cols, |_, rng| rng.random_range(0..end) as f32),
        };
        Matrix { rows: self.rows as usize, cols: cols as usize, values: values.into() }
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
