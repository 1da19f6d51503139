//! Single pass over an output and its reference that gathers the statistics of all checks.

use super::bias::{FEW, Sums};
use super::loudness::TOGETHER;
use crate::Reference;
use rayon::prelude::*;

/// Columns of a long row that one task scans.
const PIECE: usize = 1 << 16;

/// Units of the error of an element in the element check, the bias check and the norm.
pub struct Units {
    pub element: f64,
    pub bias: f64,
    pub norm: f64,
}

/// Statistics of a comparison.
#[derive(Default)]
pub struct Walk {
    /// Sample index of the first value outside the element tolerance.
    pub first_wrong: Option<usize>,
    /// Number of values outside the element tolerance.
    pub wrong: usize,
    /// Sums of each sampled row, in units of the bias check.
    pub of_rows: Vec<Sums>,
    /// Sums of each sampled column; empty with too few rows.
    pub of_cols: Vec<Sums>,
    noise: f64,
    power: f64,
}

impl Walk {
    /// Scans the sampled rows. `element` is the tolerance in units that `units` returns for a sample row and column.
    pub fn over(
        got: &[f64],
        reference: &Reference,
        element: f64,
        units: impl Fn(usize, usize) -> Units + Sync,
    ) -> Self {
        let (rows, cols) = (&reference.sample.rows, &reference.sample.cols);
        if rows.len() < FEW {
            return Self::over_few(got, reference, element, units);
        }
        let empty = || Self { of_cols: vec![Sums::default(); cols.len()], ..Self::default() };
        let parts = rows.par_chunks(TOGETHER).enumerate().map(|(part, rows)| {
            let mut walk = empty();
            for below in 0..rows.len() {
                let at = part * TOGETHER + below;
                let here = at * cols.len()..(at + 1) * cols.len();
                let (got, expected) = (&got[here.clone()], &reference.values[here]);
                let sums = walk.along(at * cols.len(), got, expected, element, |place| units(at, place));
                walk.of_rows.push(sums);
            }
            walk
        });
        let mut all = empty();
        for mut part in parts.collect::<Vec<Self>>() {
            all.of_rows.append(&mut part.of_rows);
            all.join(part);
        }
        all
    }

    /// Scans a few, possibly long rows; each is divided among threads.
    fn over_few(
        got: &[f64],
        reference: &Reference,
        element: f64,
        units: impl Fn(usize, usize) -> Units + Sync,
    ) -> Self {
        let mut all = Self::default();
        let cols = &reference.sample.cols;
        for at in 0..reference.sample.rows.len() {
            let here = at * cols.len()..(at + 1) * cols.len();
            let (got, expected) = (&got[here.clone()], &reference.values[here]);
            let parts = got.par_chunks(PIECE).zip(expected.par_chunks(PIECE)).enumerate();
            let parts = parts.map(|(part, (got, expected))| {
                let (first, mut walk) = (part * PIECE, Self::default());
                let units = |place| units(at, first + place);
                let sums = walk.along(at * cols.len() + first, got, expected, element, units);
                (walk, sums)
            });
            let mut of_row = Sums::default();
            for (part, sums) in parts.collect::<Vec<_>>() {
                all.join(part);
                of_row.join(sums);
            }
            all.of_rows.push(of_row);
        }
        all
    }

    /// Adds the statistics of a later part, except its row sums.
    fn join(&mut self, part: Self) {
        self.first_wrong = self.first_wrong.or(part.first_wrong);
        self.wrong += part.wrong;
        self.of_cols.iter_mut().zip(part.of_cols).for_each(|(sums, part)| sums.join(part));
        self.noise += part.noise;
        self.power += part.power;
    }

    /// Scans consecutive columns of a row that start at sample index `first`; returns their sums.
    fn along(
        &mut self,
        first: usize,
        got: &[f64],
        expected: &[f64],
        element: f64,
        units: impl Fn(usize) -> Units,
    ) -> Sums {
        let mut sums = Sums::default();
        for (place, (&got, &expected)) in got.iter().zip(expected).enumerate() {
            let units = units(place);
            if (got - expected).abs() > element * expected.abs().max(units.element) {
                self.first_wrong = self.first_wrong.or(Some(first + place));
                self.wrong += 1;
            }
            // Inverse of the unit: two multiplications instead of two divisions.
            let even = if units.bias > 0.0 { 1.0 / units.bias } else { 1.0 };
            sums.add(got * even, expected * even);
            if let Some(sums) = self.of_cols.get_mut(place) {
                sums.add(got * even, expected * even);
            }
            let norm = if units.norm > 0.0 { 1.0 / units.norm } else { 1.0 };
            self.noise += ((got - expected) * norm).powi(2);
            self.power += (expected * norm).powi(2);
        }
        sums
    }

    /// Relative L2 error; 0 if output and reference are both zero.
    pub fn error(&self) -> f64 {
        if self.noise == 0.0 { 0.0 } else { (self.noise / self.power).sqrt() }
    }
}
