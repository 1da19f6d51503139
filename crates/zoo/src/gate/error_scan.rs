//! Single pass over an output and its reference that gathers the statistics of all checks.

use super::bias::{MIN_SLOPE_VALUES, SlopeSums};
use super::row_column_rms::ROWS_PER_PARTIAL_SUM;
use crate::Reference;
use rayon::prelude::*;

/// Columns of a long row that one task scans.
const CHUNK_COLUMNS: usize = 1 << 16;

/// Units of the error of an element in the element check, the bias check and the norm.
pub(super) struct ErrorUnits {
    pub element: f64,
    pub bias: f64,
    pub norm: f64,
}

/// Statistics of a comparison.
#[derive(Default)]
pub(super) struct ErrorScan {
    /// Sample index of the first value outside the element tolerance.
    pub first_wrong: Option<usize>,
    /// Number of values outside the element tolerance.
    pub wrong_count: usize,
    /// Sums of each sampled row, in units of the bias check.
    pub row_sums: Vec<SlopeSums>,
    /// Sums of each sampled column; empty with too few rows.
    pub col_sums: Vec<SlopeSums>,
    noise: f64,
    power: f64,
}

impl ErrorScan {
    /// Scans the sampled rows. `element` is the tolerance in units that `units` returns for a sample row and column.
    pub(super) fn scan(
        got: &[f64],
        reference: &Reference,
        element: f64,
        units: impl Fn(usize, usize) -> ErrorUnits + Sync,
    ) -> Self {
        let (rows, cols) = (&reference.sample.rows, &reference.sample.cols);
        if rows.len() < MIN_SLOPE_VALUES {
            return Self::scan_few_rows(got, reference, element, units);
        }
        let empty = || Self { col_sums: vec![SlopeSums::default(); cols.len()], ..Self::default() };
        let parts = rows.par_chunks(ROWS_PER_PARTIAL_SUM).enumerate().map(|(part, rows)| {
            let mut walk = empty();
            for below in 0..rows.len() {
                let at = part * ROWS_PER_PARTIAL_SUM + below;
                let here = at * cols.len()..(at + 1) * cols.len();
                let (got, expected) = (&got[here.clone()], &reference.values[here]);
                let sums = walk.scan_columns(at * cols.len(), got, expected, element, |place| units(at, place));
                walk.row_sums.push(sums);
            }
            walk
        });
        let mut all = empty();
        for mut part in parts.collect::<Vec<Self>>() {
            all.row_sums.append(&mut part.row_sums);
            all.merge(part);
        }
        all
    }

    /// Scans a few, possibly long rows; each is divided among threads.
    fn scan_few_rows(
        got: &[f64],
        reference: &Reference,
        element: f64,
        units: impl Fn(usize, usize) -> ErrorUnits + Sync,
    ) -> Self {
        let mut all = Self::default();
        let cols = &reference.sample.cols;
        for at in 0..reference.sample.rows.len() {
            let here = at * cols.len()..(at + 1) * cols.len();
            let (got, expected) = (&got[here.clone()], &reference.values[here]);
            let parts = got.par_chunks(CHUNK_COLUMNS).zip(expected.par_chunks(CHUNK_COLUMNS)).enumerate();
            let parts = parts.map(|(part, (got, expected))| {
                let (first, mut walk) = (part * CHUNK_COLUMNS, Self::default());
                let units = |place| units(at, first + place);
                let sums = walk.scan_columns(at * cols.len() + first, got, expected, element, units);
                (walk, sums)
            });
            let mut of_row = SlopeSums::default();
            for (part, sums) in parts.collect::<Vec<_>>() {
                all.merge(part);
                of_row.merge(sums);
            }
            all.row_sums.push(of_row);
        }
        all
    }

    /// Adds the statistics of a later part, except its row sums.
    fn merge(&mut self, part: Self) {
        self.first_wrong = self.first_wrong.or(part.first_wrong);
        self.wrong_count += part.wrong_count;
        self.col_sums.iter_mut().zip(part.col_sums).for_each(|(sums, part)| sums.merge(part));
        self.noise += part.noise;
        self.power += part.power;
    }

    /// Scans consecutive columns of a row that start at sample index `first`; returns their sums.
    fn scan_columns(
        &mut self,
        first: usize,
        got: &[f64],
        expected: &[f64],
        element: f64,
        units: impl Fn(usize) -> ErrorUnits,
    ) -> SlopeSums {
        let mut sums = SlopeSums::default();
        for (place, (&got, &expected)) in got.iter().zip(expected).enumerate() {
            let units = units(place);
            if (got - expected).abs() > element * expected.abs().max(units.element) {
                self.first_wrong = self.first_wrong.or(Some(first + place));
                self.wrong_count += 1;
            }
            // Inverse of the unit: two multiplications instead of two divisions.
            let even = if units.bias > 0.0 { 1.0 / units.bias } else { 1.0 };
            sums.add(got * even, expected * even);
            if let Some(sums) = self.col_sums.get_mut(place) {
                sums.add(got * even, expected * even);
            }
            let norm = if units.norm > 0.0 { 1.0 / units.norm } else { 1.0 };
            self.noise += ((got - expected) * norm).powi(2);
            self.power += (expected * norm).powi(2);
        }
        sums
    }

    /// Relative L2 error; 0 if output and reference are both zero.
    pub(super) fn error(&self) -> f64 {
        if self.noise == 0.0 { 0.0 } else { (self.noise / self.power).sqrt() }
    }
}
