//! Random matrix whose elements are computed on demand from (seed, index).

use crate::lazy_fill::fill_chunks;
use crate::scale_factors::ScaleFactors;
use crate::stream::RandomStream;
use calorimeter_recipes::{Element, ElementCodec, FloatType};

/// Parameters of a random matrix.
#[derive(Debug)]
pub(crate) struct RandomMatrix {
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

/// Adjacent elements that one thread computes at a time.
const CHUNK_LEN: usize = 1 << 14;

impl RandomMatrix {
    /// Computes all elements, row-major.
    pub(crate) fn all_elements(&self) -> Vec<f32> {
        self.elements_from(0, self.rows * self.cols)
    }

    /// Computes one row.
    pub(crate) fn row(&self, row: usize) -> Box<[f32]> {
        self.elements_from(row * self.cols, self.cols).into_boxed_slice()
    }

    /// Computes `count` elements from the row-major index `start` on. May be called in the initializer of a lock.
    fn elements_from(&self, start: usize, count: usize) -> Vec<f32> {
        self.scale_factors.iter().for_each(|factors| factors.cache_column_factors(self.rows));
        let mut values = vec![0.0; count];
        fill_chunks(&mut values, CHUNK_LEN, |chunk, mut values| {
            let mut at = start + chunk * CHUNK_LEN;
            while !values.is_empty() {
                let (row, col) = (at / self.cols, at % self.cols);
                let (part, rest) = values.split_at_mut(values.len().min(self.cols - col));
                self.fill(row, col, part);
                at += part.len();
                values = rest;
            }
        });
        values
    }

    /// Computes one element.
    pub(crate) fn element(&self, row: usize, col: usize) -> f32 {
        let mut value = [0.0];
        self.fill(row, col, &mut value);
        value[0]
    }

    /// Computes part of a row, starting at column `first`, rounded to the element type.
    pub(crate) fn fill(&self, row: usize, first: usize, values: &mut [f32]) {
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
