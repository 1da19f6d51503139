//! The numbers of a matrix, any of which can be made without the others.

use crate::louder::Louder;
use crate::stream::Stream;
use calorimeter_recipes::{Codes, Element, FloatType};
use rayon::prelude::*;

/// How each of them is made.
#[derive(Debug)]
pub struct Drawn {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Where they are drawn from.
    pub stream: Stream,
    /// Gains, if some places are louder than others.
    pub louder: Option<Louder>,
    /// The loud rows and what the others are multiplied by, if those are quiet.
    pub quiet: Option<(Vec<usize>, f32)>,
    /// The means of rows are up to four times this.
    pub means: f32,
    /// What holds each of them exactly; none where they are whole numbers.
    pub element: Option<Element>,
}

/// Numbers of a row that a thread makes at a time.
const PIECE: usize = 1 << 14;

impl Drawn {
    /// All of them.
    pub fn whole(&self) -> Vec<f32> {
        let Self { rows, cols, .. } = *self;
        let mut values = vec![0.0; rows * cols];
        self.louder.iter().for_each(|louder| louder.share_columns(rows));
        values.par_chunks_mut(cols.max(1)).enumerate().for_each(|(row, values)| {
            self.fill_row(row, values);
        });
        values
    }

    /// Those of a row.
    pub fn row(&self, row: usize) -> Box<[f32]> {
        let Self { rows, cols, .. } = *self;
        self.louder.iter().for_each(|louder| louder.share_columns(rows));
        let mut values = vec![0.0; cols].into_boxed_slice();
        self.fill_row(row, &mut values);
        values
    }

    /// Threads share long rows.
    fn fill_row(&self, row: usize, values: &mut [f32]) {
        let pieces = values.par_chunks_mut(PIECE).enumerate();
        pieces.for_each(|(piece, values)| self.fill(row, piece * PIECE, values));
    }

    /// One of them.
    pub fn at(&self, row: usize, col: usize) -> f32 {
        let mut value = [0.0];
        self.fill(row, col, &mut value);
        value[0]
    }

    /// Those of a row, from a column on, each one that the element type holds exactly.
    pub fn fill(&self, row: usize, first: usize, values: &mut [f32]) {
        self.stream.fill((row * self.cols + first) as u64, values);
        if let Some(louder) = &self.louder {
            louder.apply(row, first, values);
        }
        if let Some((loud, quiet)) = &self.quiet
            && loud.binary_search(&row).is_err()
        {
            values.iter_mut().for_each(|value| *value *= quiet);
        }
        let mean = self.means * ((row % 9) as f32 - 4.0);
        match self.element {
            None => {}
            Some(Element::Float(dtype)) => values.iter_mut().for_each(|value| *value = dtype.round(*value + mean)),
            Some(element) => {
                values.iter_mut().for_each(|value| *value = element.decode(element.encode(*value + mean)));
            }
        }
    }
}
