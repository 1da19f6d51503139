//! Random matrix whose elements are computed on demand from (seed, index).

use crate::scale_factors::ScaleFactors;
use crate::stream::RandomStream;
use calorimeter_recipes::{Element, ElementCodec, FloatType};
use rayon::prelude::*;

/// Parameters of a random matrix.
#[derive(Debug)]
pub struct RandomMatrix {
    pub rows: usize,
    pub cols: usize,
    /// Source of random values.
    pub stream: RandomStream,
    /// Scale factors per row, column and block, if magnitudes vary.
    pub scale_factors: Option<ScaleFactors>,
    /// Sorted indices of the outlier rows, and the factor that all other rows are multiplied by.
    pub outlier_rows: Option<(Vec<usize>, f32)>,
    /// Row `r` is shifted by `(r % 9 - 4)` times this value.
    pub mean_step: f32,
    /// Element type that values are rounded to; `None` for integers, which are exact in f32.
    pub element: Option<Element>,
}

/// Elements of a row that one task computes.
const CHUNK_LEN: usize = 1 << 14;

impl RandomMatrix {
    /// Computes all elements, row-major.
    pub fn all_elements(&self) -> Vec<f32> {
        let Self { rows, cols, .. } = *self;
        let mut values = vec![0.0; rows * cols];
        self.scale_factors.iter().for_each(|louder| louder.cache_column_factors(rows));
        values.par_chunks_mut(cols.max(1)).enumerate().for_each(|(row, values)| {
            self.fill_row(row, values);
        });
        values
    }

    /// Computes one row.
    pub fn row(&self, row: usize) -> Box<[f32]> {
        let Self { rows, cols, .. } = *self;
        self.scale_factors.iter().for_each(|louder| louder.cache_column_factors(rows));
        let mut values = vec![0.0; cols].into_boxed_slice();
        self.fill_row(row, &mut values);
        values
    }

    /// Fills a row in parallel chunks.
    fn fill_row(&self, row: usize, values: &mut [f32]) {
        let pieces = values.par_chunks_mut(CHUNK_LEN).enumerate();
        pieces.for_each(|(piece, values)| self.fill(row, piece * CHUNK_LEN, values));
    }

    /// Computes one element.
    pub fn element(&self, row: usize, col: usize) -> f32 {
        let mut value = [0.0];
        self.fill(row, col, &mut value);
        value[0]
    }

    /// Computes part of a row, starting at column `first`, rounded to the element type.
    pub fn fill(&self, row: usize, first: usize, values: &mut [f32]) {
        self.stream.fill((row * self.cols + first) as u64, values);
        if let Some(louder) = &self.scale_factors {
            louder.apply(row, first, values);
        }
        if let Some((loud, quiet)) = &self.outlier_rows
            && loud.binary_search(&row).is_err()
        {
            values.iter_mut().for_each(|value| *value *= quiet);
        }
        let mean = self.mean_step * ((row % 9) as f32 - 4.0);
        match self.element {
            None => {}
            Some(Element::Float(dtype)) => values.iter_mut().for_each(|value| *value = dtype.round(*value + mean)),
            Some(element) => {
                values.iter_mut().for_each(|value| *value = element.decode(element.encode(*value + mean)));
            }
        }
    }
}
