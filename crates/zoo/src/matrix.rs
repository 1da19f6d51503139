//! Matrix in host memory.

use crate::drawn::Drawn;
use crate::{Along, Sample};
use rayon::prelude::*;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Row-major matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// `rows * cols` elements.
    pub values: Values,
}

/// Elements shared by all clones.
///
/// Random and rotated matrices compute rows or all elements on first access.
#[derive(Clone)]
pub struct Values(Arc<Content>);

struct Content {
    origin: Option<Origin>,
    whole: OnceLock<Vec<f32>>,
    /// Rows computed individually.
    rows: OnceLock<Vec<Row>>,
}

/// Rule from which elements are computed.
enum Origin {
    Drawn(Drawn),
    /// Another matrix rotated along an axis by fewer rows or columns than it has.
    Moved(Matrix, Along, usize),
}

/// Row computed on first access.
type Row = OnceLock<Box<[f32]>>;

impl Matrix {
    /// Creates a lazy random matrix.
    pub(crate) fn drawn(drawn: Drawn) -> Self {
        let Drawn { rows, cols, .. } = drawn;
        Self { rows, cols, values: Values::new(Some(Origin::Drawn(drawn)), OnceLock::new()) }
    }

    /// Returns the random parameters, if the matrix is random and not rotated.
    #[cfg(feature = "cuda")]
    pub(crate) fn as_drawn(&self) -> Option<&Drawn> {
        match &self.values.0.origin {
            Some(Origin::Drawn(drawn)) => Some(drawn),
            _ => None,
        }
    }

    /// Rotates rows or columns by `by`; the last ones come first.
    pub(crate) fn moved_on(&self, along: Along, by: usize) -> Self {
        let by = match along {
            Along::Rows => by % self.rows.max(1),
            Along::Columns => by % self.cols.max(1),
            Along::Nothing => 0,
        };
        let moved = || Values::new(Some(Origin::Moved(self.clone(), along, by)), OnceLock::new());
        if by == 0 { self.clone() } else { Self { rows: self.rows, cols: self.cols, values: moved() } }
    }

    /// Returns one row.
    pub fn row(&self, row: usize) -> &[f32] {
        let Content { origin, whole, rows } = &*self.values.0;
        match (whole.get(), origin) {
            (None, Some(Origin::Moved(of, Along::Rows, by))) => of.row(before(row, *by, self.rows)),
            (None, Some(origin)) => {
                let rows = rows.get_or_init(|| (0..self.rows).map(|_| Row::new()).collect());
                rows[row].get_or_init(|| match origin {
                    Origin::Drawn(drawn) => drawn.row(row),
                    Origin::Moved(of, _, by) => moved_on(of.row(row), of.cols, *by).into(),
                })
            }
            _ => &self.values[row * self.cols..(row + 1) * self.cols],
        }
    }

    /// Computes the sampled rows in parallel if the sample includes all columns. Element-wise access would be far
    /// slower.
    pub(crate) fn make_rows_of(&self, sample: &Sample) {
        if sample.cols.len() == self.cols && sample.rows.last().is_none_or(|&last| last < self.rows) {
            sample.rows.par_iter().for_each(|&row| {
                self.row(row);
            });
        }
    }

    /// Returns one element.
    pub fn at(&self, row: usize, col: usize) -> f32 {
        let Content { origin, whole, rows } = &*self.values.0;
        match (whole.get(), origin) {
            (None, Some(Origin::Moved(of, along, by))) => match along {
                Along::Rows => of.at(before(row, *by, self.rows), col),
                _ => of.at(row, before(col, *by, self.cols)),
            },
            (None, Some(Origin::Drawn(drawn))) => match rows.get().and_then(|rows| rows[row].get()) {
                Some(row) => row[col],
                None => drawn.at(row, col),
            },
            _ => self.values[row * self.cols + col],
        }
    }

    /// Returns one row in double precision.
    pub fn exact_row(&self, row: usize) -> Vec<f64> {
        self.row(row).iter().map(|&x| f64::from(x)).collect()
    }
}

impl Origin {
    fn whole(&self) -> Vec<f32> {
        match self {
            Self::Drawn(drawn) => drawn.whole(),
            Self::Moved(of, Along::Rows, by) => moved_on(&of.values, of.values.len(), by * of.cols),
            Self::Moved(of, _, by) => moved_on(&of.values, of.cols, *by),
        }
    }
}

/// Index before a rotation by `by` of `count` items.
fn before(at: usize, by: usize, count: usize) -> usize {
    (at + count - by) % count
}

impl Values {
    fn new(origin: Option<Origin>, whole: OnceLock<Vec<f32>>) -> Self {
        Self(Arc::new(Content { origin, whole, rows: OnceLock::new() }))
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
        self.0.whole.get_or_init(|| self.0.origin.as_ref().map(Origin::whole).unwrap_or_default())
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

/// Rotates each segment of `line` elements by `by`; the last elements come first.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fill, Operand};
    use calorimeter_recipes::{Dtype, Element};

    #[test]
    fn a_moved_matrix_is_made_as_far_as_it_is_asked_for() {
        let (rows, cols) = (5, 7);
        let matrix = || Operand::normal(5, 7, Element::Float(Dtype::F32)).filled(Fill::Far).matrix(3);
        let whole = matrix().values.to_vec();
        for (along, line, unit) in [(Along::Rows, rows * cols, cols), (Along::Columns, cols, 1)] {
            for by in [0, 1, 4] {
                let expected = moved_on(&whole, line, by * unit);
                let of = matrix();
                let moved = of.moved_on(along, by);
                assert_eq!(moved.row(4), &expected[4 * cols..]);
                assert_eq!(moved.at(0, 6), expected[6]);
                let asked = |matrix: &Matrix| matrix.values.0.whole.get().is_some();
                assert!(!asked(&moved) && !asked(&of), "{along:?} {by}");
                assert_eq!(moved.values.to_vec(), expected, "{along:?} {by}");
                assert_eq!((moved.row(1), moved.at(2, 3)), (&expected[cols..2 * cols], expected[2 * cols + 3]));
            }
        }
        assert_eq!(matrix().moved_on(Along::Nothing, 2), matrix());
    }
}
