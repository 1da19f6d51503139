//! Matrix in host memory.

use crate::lazy_fill::fill_chunks;
use crate::random_matrix::RandomMatrix;
use crate::{OutputSample, RotationAxis};
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
pub struct Values(Arc<ValueStorage>);

struct ValueStorage {
    source: Option<ValueSource>,
    all_values: OnceLock<Vec<f32>>,
    /// Rows computed individually.
    rows: OnceLock<Vec<LazyRow>>,
}

/// Rule from which elements are computed.
enum ValueSource {
    Random(RandomMatrix),
    /// Another matrix rotated along an axis by fewer rows or columns than it has.
    Rotated(Matrix, RotationAxis, usize),
}

/// Row computed on first access.
type LazyRow = OnceLock<Box<[f32]>>;

impl Matrix {
    /// Creates a lazy random matrix.
    pub(crate) fn from_random(drawn: RandomMatrix) -> Self {
        let RandomMatrix { rows, cols, .. } = drawn;
        Self { rows, cols, values: Values::new(Some(ValueSource::Random(drawn)), OnceLock::new()) }
    }

    /// Returns the random parameters, if the matrix is random and not rotated.
    #[cfg(feature = "native")]
    pub(crate) fn as_random(&self) -> Option<&RandomMatrix> {
        match &self.values.0.source {
            Some(ValueSource::Random(drawn)) => Some(drawn),
            _ => None,
        }
    }

    /// Rotates rows or columns by `by`; the last ones come first.
    pub(crate) fn rotated(&self, along: RotationAxis, by: usize) -> Self {
        let by = match along {
            RotationAxis::Rows => by % self.rows.max(1),
            RotationAxis::Columns => by % self.cols.max(1),
            RotationAxis::Fixed => 0,
        };
        let moved = || Values::new(Some(ValueSource::Rotated(self.clone(), along, by)), OnceLock::new());
        if by == 0 { self.clone() } else { Self { rows: self.rows, cols: self.cols, values: moved() } }
    }

    /// Returns one row.
    pub fn row(&self, row: usize) -> &[f32] {
        let ValueStorage { source: origin, all_values: whole, rows } = &*self.values.0;
        match (whole.get(), origin) {
            (None, Some(ValueSource::Rotated(of, RotationAxis::Rows, by))) => of.row(source_index(row, *by, self.rows)),
            (None, Some(origin)) => {
                let rows = rows.get_or_init(|| (0..self.rows).map(|_| LazyRow::new()).collect());
                rows[row].get_or_init(|| match origin {
                    ValueSource::Random(drawn) => drawn.row(row),
                    ValueSource::Rotated(of, _, by) => rotate_segments(of.row(row), of.cols, *by).into(),
                })
            }
            _ => &self.values[row * self.cols..(row + 1) * self.cols],
        }
    }

    /// Computes the sampled rows in parallel if the sample includes all columns. Element-wise access would be far
    /// slower.
    pub(crate) fn compute_sampled_rows(&self, sample: &OutputSample) {
        if sample.cols.len() == self.cols && sample.rows.last().is_none_or(|&last| last < self.rows) {
            sample.rows.par_iter().for_each(|&row| {
                self.row(row);
            });
        }
    }

    /// Returns one element.
    pub fn element(&self, row: usize, col: usize) -> f32 {
        let ValueStorage { source: origin, all_values: whole, rows } = &*self.values.0;
        match (whole.get(), origin) {
            (None, Some(ValueSource::Rotated(of, along, by))) => match along {
                RotationAxis::Rows => of.element(source_index(row, *by, self.rows), col),
                _ => of.element(row, source_index(col, *by, self.cols)),
            },
            (None, Some(ValueSource::Random(drawn))) => match rows.get().and_then(|rows| rows[row].get()) {
                Some(row) => row[col],
                None => drawn.element(row, col),
            },
            _ => self.values[row * self.cols + col],
        }
    }

    /// Returns one row in double precision.
    pub fn exact_row(&self, row: usize) -> Vec<f64> {
        self.row(row).iter().map(|&x| f64::from(x)).collect()
    }
}

impl ValueSource {
    fn compute_all(&self) -> Vec<f32> {
        match self {
            Self::Random(drawn) => drawn.all_elements(),
            Self::Rotated(of, RotationAxis::Rows, by) => rotate_segments(&of.values, of.values.len(), by * of.cols),
            Self::Rotated(of, _, by) => rotate_segments(&of.values, of.cols, *by),
        }
    }
}

/// Index before a rotation by `by` of `count` items.
fn source_index(at: usize, by: usize, count: usize) -> usize {
    (at + count - by) % count
}

impl Values {
    fn new(origin: Option<ValueSource>, whole: OnceLock<Vec<f32>>) -> Self {
        Self(Arc::new(ValueStorage { source: origin, all_values: whole, rows: OnceLock::new() }))
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
        self.0.all_values.get_or_init(|| self.0.source.as_ref().map(ValueSource::compute_all).unwrap_or_default())
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

/// Rotates each segment of `line` elements by `by`, which is less than `line`; the last elements come first.
pub(crate) fn rotate_segments(values: &[f32], line: usize, by: usize) -> Vec<f32> {
    const CHUNK_LEN: usize = 1 << 16;
    let mut moved = vec![0.0; values.len()];
    fill_chunks(&mut moved, CHUNK_LEN, |chunk, mut to| {
        let mut at = chunk * CHUNK_LEN;
        while !to.is_empty() {
            let (segment, offset) = (at / line * line, at % line);
            // Elements of a segment before `by` come from its end, the others from its start.
            let end = if offset < by { by } else { line };
            let from = segment + source_index(offset, by, line);
            let (part, rest) = to.split_at_mut(to.len().min(end - offset));
            part.copy_from_slice(&values[from..from + part.len()]);
            at += part.len();
            to = rest;
        }
    });
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fill, Operand};
    use calorimeter_recipes::{Dtype, Element};

    /// While a thread computes lazy values in parallel, it may take over another task that needs the same values. A
    /// lock around rayon calls would then wait for itself.
    #[test]
    fn parallel_access_to_lazy_values_terminates() {
        const THREADS: usize = 16;
        const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
        let (done, finished) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().unwrap();
            pool.install(|| {
                for seed in 0..20 {
                    let gate = Operand::normal(40, 70_000, Element::E4m3).gate_matrix(seed);
                    let of_columns = |matrix: &Matrix| -> f32 {
                        let sum = |col: usize| (0..matrix.rows).map(|row| matrix.row(row)[col]).sum::<f32>();
                        (0..500).into_par_iter().map(sum).sum()
                    };
                    of_columns(&gate);
                    of_columns(&gate.rotated(RotationAxis::Columns, 3));
                    let whole = Operand::normal(300, 1000, Element::E4m3).gate_matrix(seed);
                    (0..500).into_par_iter().map(|at| whole.values[at]).sum::<f32>();
                }
            });
            done.send(()).unwrap();
        });
        finished.recv_timeout(TIMEOUT).expect("no deadlock");
    }

    #[test]
    fn rotated_matrices_are_computed_on_demand() {
        let (rows, cols) = (5, 7);
        let matrix =
            || Operand::normal(5, 7, Element::Float(Dtype::F32)).with_fill(Fill::NormalWithLargeMeans).matrix(3);
        let whole = matrix().values.to_vec();
        for (along, line, unit) in [(RotationAxis::Rows, rows * cols, cols), (RotationAxis::Columns, cols, 1)] {
            for by in [0, 1, 4] {
                let expected = rotate_segments(&whole, line, by * unit);
                let of = matrix();
                let moved = of.rotated(along, by);
                assert_eq!(moved.row(4), &expected[4 * cols..]);
                assert_eq!(moved.element(0, 6), expected[6]);
                let asked = |matrix: &Matrix| matrix.values.0.all_values.get().is_some();
                assert!(!asked(&moved) && !asked(&of), "{along:?} {by}");
                assert_eq!(moved.values.to_vec(), expected, "{along:?} {by}");
                assert_eq!((moved.row(1), moved.element(2, 3)), (&expected[cols..2 * cols], expected[2 * cols + 3]));
            }
        }
        assert_eq!(matrix().rotated(RotationAxis::Fixed, 2), matrix());
    }
}
