//! One walk over an output beside its reference, in which everything is added up that the gate's tests need.

use super::bias::{FEW, Sums};
use super::projection::TOGETHER;
use crate::{Output, Reference};
use rayon::prelude::*;

/// What an error at a place is measured in: for the place itself, for the test of bias, and for the norm of all.
pub struct Units {
    pub element: f64,
    pub bias: f64,
    pub norm: f64,
}

/// What the walk found.
#[derive(Default)]
pub struct Walk {
    /// The first value that is further off than it may be, by its place in the sample.
    pub first_wrong: Option<usize>,
    /// How many are.
    pub wrong: usize,
    /// For each sampled row, in units of the test of bias.
    pub of_rows: Vec<Sums>,
    /// For each sampled column; none where there are too few rows.
    pub of_cols: Vec<Sums>,
    noise: f64,
    power: f64,
}

impl Walk {
    /// Through the sampled rows; `element` is how far a value may be off in its units, which are given by row and column of
    /// the sample.
    pub fn over(
        output: &Output,
        reference: &Reference,
        element: f64,
        units: impl Fn(usize, usize) -> Units + Sync,
    ) -> Self {
        let (rows, cols) = (&reference.sample.rows, &reference.sample.cols);
        let summed_cols = if rows.len() >= FEW { cols.len() } else { 0 };
        let empty = || Self { of_cols: vec![Sums::default(); summed_cols], ..Self::default() };
        let parts = rows.par_chunks(TOGETHER).enumerate().map(|(part, rows)| {
            let mut walk = empty();
            for (below, &row) in rows.iter().enumerate() {
                let at = part * TOGETHER + below;
                let (got, expected) = (&output.values[row * output.cols..], &reference.values[at * cols.len()..]);
                walk.row(at, cols, got, expected, element, |col| units(at, col));
            }
            walk
        });
        let mut all = empty();
        for part in parts.collect::<Vec<Self>>() {
            all.first_wrong = all.first_wrong.or(part.first_wrong);
            all.wrong += part.wrong;
            all.of_rows.extend(part.of_rows);
            all.of_cols.iter_mut().zip(part.of_cols).for_each(|(sums, part)| sums.join(part));
            all.noise += part.noise;
            all.power += part.power;
        }
        all
    }

    fn row(
        &mut self,
        at: usize,
        cols: &[usize],
        got: &[f32],
        expected: &[f64],
        element: f64,
        units: impl Fn(usize) -> Units,
    ) {
        let mut sums = Sums::default();
        for (place, &col) in cols.iter().enumerate() {
            let (got, expected, units) = (f64::from(got[col]), expected[place], units(place));
            if (got - expected).abs() > element * expected.abs().max(units.element) {
                self.first_wrong = self.first_wrong.or(Some(at * cols.len() + place));
                self.wrong += 1;
            }
            let even = if units.bias > 0.0 { units.bias } else { 1.0 };
            sums.add(got / even, expected / even);
            if let Some(sums) = self.of_cols.get_mut(place) {
                sums.add(got / even, expected / even);
            }
            let norm = if units.norm > 0.0 { units.norm } else { 1.0 };
            self.noise += ((got - expected) / norm).powi(2);
            self.power += (expected / norm).powi(2);
        }
        self.of_rows.push(sums);
    }

    /// The relative error in the Euclidean norm. Where nothing is expected and nothing came, there is none.
    pub fn error(&self) -> f64 {
        if self.noise == 0.0 { 0.0 } else { (self.noise / self.power).sqrt() }
    }
}
