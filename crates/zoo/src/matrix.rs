//! A matrix on the host.

use crate::drawn::Drawn;
use rayon::prelude::*;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Row-major values.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// `rows * cols` values.
    pub values: Values,
}

/// Numbers, shared by all their clones. Those that follow from a seed are made when somebody asks, and as many as he asks for.
#[derive(Clone)]
pub struct Values(Arc<Content>);

struct Content {
    drawn: Option<Drawn>,
    whole: OnceLock<Vec<f32>>,
    /// Rows that were made alone.
    rows: OnceLock<Vec<Row>>,
}

/// Made when it is asked for.
type Row = OnceLock<Box<[f32]>>;

impl Matrix {
    /// What is drawn so.
    pub(crate) fn drawn(drawn: Drawn) -> Self {
        let Drawn { rows, cols, .. } = drawn;
        Self { rows, cols, values: Values::new(Some(drawn), OnceLock::new()) }
    }

    /// How its numbers follow from their places, if they do.
    #[cfg(feature = "cuda")]
    pub(crate) fn as_drawn(&self) -> Option<&Drawn> {
        self.values.0.drawn.as_ref()
    }

    /// The same with its rows moved on by so many; the last come first.
    pub(crate) fn moved_on(&self, rows: usize) -> Self {
        let values = moved_on(&self.values, self.values.len(), rows * self.cols);
        Self { rows: self.rows, cols: self.cols, values: values.into() }
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        let Content { drawn, whole, rows } = &*self.values.0;
        match (whole.get(), drawn) {
            (None, Some(drawn)) => {
                let rows = rows.get_or_init(|| (0..self.rows).map(|_| Row::new()).collect());
                rows[row].get_or_init(|| drawn.row(row))
            }
            _ => &self.values[row * self.cols..(row + 1) * self.cols],
        }
    }

    /// One number.
    pub fn at(&self, row: usize, col: usize) -> f32 {
        let Content { drawn, whole, rows } = &*self.values.0;
        match (whole.get(), drawn) {
            (None, Some(drawn)) => match rows.get().and_then(|rows| rows[row].get()) {
                Some(row) => row[col],
                None => drawn.at(row, col),
            },
            _ => self.values[row * self.cols + col],
        }
    }

    /// One row in double precision.
    pub fn exact_row(&self, row: usize) -> Vec<f64> {
        self.row(row).iter().map(|&x| f64::from(x)).collect()
    }
}

impl Values {
    fn new(drawn: Option<Drawn>, whole: OnceLock<Vec<f32>>) -> Self {
        Self(Arc::new(Content { drawn, whole, rows: OnceLock::new() }))
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Self {
        Self::new(None, values.into())
    }
}

impl Deref for Values {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.0.whole.get_or_init(|| self.0.drawn.as_ref().map(Drawn::whole).unwrap_or_default())
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Lines of so many values, each moved on by some of them; the last come first.
pub(crate) fn moved_on(values: &[f32], line: usize, by: usize) -> Vec<f32> {
    const SHARE: usize = 1 << 16;
    let copy = |to: &mut [f32], from: &[f32]| {
        to.par_chunks_mut(SHARE).zip(from.par_chunks(SHARE)).for_each(|(to, from)| to.copy_from_slice(from));
    };
    let mut moved = vec![0.0; values.len()];
    moved.par_chunks_mut(line.max(1)).zip(values.par_chunks(line.max(1))).for_each(|(moved, values)| {
        let (before, after) = values.split_at(values.len() - by);
        let (first, rest) = moved.split_at_mut(by);
        copy(first, after);
        copy(rest, before);
    });
    moved
}
