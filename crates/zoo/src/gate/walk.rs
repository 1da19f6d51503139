//! One walk over an output beside its reference, in which everything is added up that the gate's tests need.

use super::bias::{FEW, Sums};
use super::loudness::TOGETHER;
use crate::Reference;
use rayon::prelude::*;

/// Columns of a long row that are walked through together.
const PIECE: usize = 1 << 16;

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

    /// The same through a few rows, which may be long: threads share each.
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

    /// Takes in what a later part found, but for its rows.
    fn join(&mut self, part: Self) {
        self.first_wrong = self.first_wrong.or(part.first_wrong);
        self.wrong += part.wrong;
        self.of_cols.iter_mut().zip(part.of_cols).for_each(|(sums, part)| sums.join(part));
        self.noise += part.noise;
        self.power += part.power;
    }

    /// Along some columns of a row, whose first has this place in the sample; answers what they come to.
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
            // One over the unit: what is divided twice is multiplied.
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

    /// The relative error in the Euclidean norm. Where nothing is expected and nothing came, there is none.
    pub fn error(&self) -> f64 {
        if self.noise == 0.0 { 0.0 } else { (self.noise / self.power).sqrt() }
    }
}
