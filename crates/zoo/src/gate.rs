//! Correctness gate, and accuracy relative to the unquantized model.

mod bias;
mod evidence;
mod loudness;
mod mismatch;
pub(crate) mod projection;
mod tolerance;
mod walk;

use crate::{Output, Reference, Sample, Seen, Spoilt};
use evidence::first_spoilt;
use loudness::Loudness;
use rayon::prelude::*;
use walk::{Units, Walk};

pub use bias::{Bias, Part};
pub use calorimeter_recipes::Accuracy;
pub use evidence::Evidence;
pub use mismatch::Mismatch;
pub use projection::Projection;
pub use tolerance::Tolerance;
pub(crate) use tolerance::{fast_sums, tf32_rounding};

/// Result of a check that passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Relative L2 error.
    pub rel_l2: f64,
    /// True if the output is within tolerance only under TF32 rounding of f32 operands.
    pub tf32: bool,
}

/// Compares an output with its reference in double precision; returns the relative error.
pub fn judge(output: &impl Evidence, reference: &Reference, tolerance: &Tolerance) -> Result<f64, Mismatch> {
    judge_seen(&output.seen(reference), reference, tolerance)
}

// Free of generics: generic functions are compiled in the calling crate, which may be built with little optimization.
fn judge_seen(seen: &Seen, reference: &Reference, tolerance: &Tolerance) -> Result<f64, Mismatch> {
    judge_in(seen, reference, tolerance, |loudness, _, _| loudness.of_all())
}

/// Compares the output of a matmul with its reference; returns the relative error.
///
/// Errors may be proportional to the expected magnitude of the row and column, or to the overall magnitude. The latter
/// matters where an activation zeroes nearly all of a column: the remaining values still carry the rounding errors of
/// the zeroed ones.
pub fn judge_sums(output: &impl Evidence, reference: &Reference, tolerance: &Tolerance) -> Result<f64, Mismatch> {
    judge_sums_seen(&output.seen(reference), reference, tolerance)
}

fn judge_sums_seen(seen: &Seen, reference: &Reference, tolerance: &Tolerance) -> Result<f64, Mismatch> {
    judge_in(seen, reference, tolerance, |loudness, row, col| loudness.at(row, col).max(loudness.of_all()))
}

fn judge_in(
    seen: &Seen,
    reference: &Reference,
    tolerance: &Tolerance,
    unit: impl Fn(&Loudness, usize, usize) -> f64 + Sync,
) -> Result<f64, Mismatch> {
    check_seen(seen, reference)?;
    let loudness = Loudness::of(&reference.values, reference.sample.cols.len());
    let walk = Walk::over(&seen.sampled, reference, tolerance.element, |row, col| Units {
        element: unit(&loudness, row, col),
        bias: loudness.at(row, col).max(loudness.of_all()),
        norm: 1.0,
    });
    check_elements(&walk, seen, reference)?;
    // A slope over a few values is meaningless.
    if let Some(slope) = tolerance.slope.filter(|_| reference.values.len() >= bias::FEW) {
        check_bias(&walk, reference, &Bias::of(slope, tolerance.computed, tolerance.both_computed))?;
    }
    check_norm(&walk, tolerance, reference)?;
    check_sums(seen, reference, walk.error())
}

/// Compares an output in units of the expected magnitude of each row and column, with an explicit bias limit.
pub fn judge_evenly(
    output: &impl Evidence,
    reference: &Reference,
    tolerance: &Tolerance,
    bias: &Bias,
) -> Result<f64, Mismatch> {
    judge_evenly_seen(&output.seen(reference), reference, tolerance, bias)
}

fn judge_evenly_seen(seen: &Seen, reference: &Reference, tolerance: &Tolerance, bias: &Bias) -> Result<f64, Mismatch> {
    check_seen(seen, reference)?;
    let loudness = Loudness::at_most(&reference.values, reference.sample.cols.len());
    let walk = Walk::over(&seen.sampled, reference, tolerance.element, |row, col| {
        let unit = loudness.at(row, col);
        Units { element: unit, bias: unit, norm: unit }
    });
    check_elements(&walk, seen, reference)?;
    check_bias(&walk, reference, bias)?;
    check_norm(&walk, tolerance, reference)?;
    check_sums(seen, reference, walk.error())
}

/// Compares an output, rotated back to set 0, element by element with an output of set 0 whose sample passed the gate.
///
/// Both may deviate from the reference by the element tolerance, so their difference may be twice that.
pub fn judge_beside(output: &Output, right: &Output, tolerance: &Tolerance) -> Result<(), Mismatch> {
    check_written(output)?;
    let cols = right.cols;
    let loudness = Loudness::of(&right.values, cols);
    let rows = output.values.par_chunks(cols).zip(right.values.par_chunks(cols)).enumerate();
    let wrong = rows.map(|(row, (got, right))| {
        let wrong = |(col, (got, right)): (usize, (&f32, &f32))| {
            let (got, right) = (f64::from(*got), f64::from(*right));
            let unit = right.abs().max(loudness.at(row, col)).max(loudness.of_all());
            ((got - right).abs() > 2.0 * tolerance.element * unit).then_some((row, col, got, right))
        };
        // Most pairs are bit-identical.
        let found: Vec<_> = got.iter().zip(right).enumerate().filter(|(_, (a, b))| a != b).filter_map(wrong).collect();
        found
    });
    let wrong: Vec<_> = wrong.flatten_iter().collect();
    match wrong.first() {
        Some(&(row, col, got, expected)) => {
            Err(Mismatch::Element { row, col, got, expected, count: wrong.len(), compared: output.values.len() })
        }
        None => Ok(()),
    }
}

/// Rejects an output of the wrong size or with non-finite values.
fn check_written(output: &Output) -> Result<(), Mismatch> {
    check_whole([output.rows, output.cols], output.values.len(), first_spoilt(&output.values))
}

/// Rejects a digest of the wrong size, with non-finite values, or with fewer samples than its reference.
fn check_seen(seen: &Seen, reference: &Reference) -> Result<(), Mismatch> {
    check_whole(seen.size, seen.count, seen.spoilt)?;
    let (got, expected) = (seen.sampled.len(), reference.values.len());
    if got == expected { Ok(()) } else { Err(Mismatch::Size { got, expected }) }
}

fn check_whole([rows, cols]: [usize; 2], got: usize, spoilt: Option<Spoilt>) -> Result<(), Mismatch> {
    let expected = rows * cols;
    if got != expected {
        return Err(Mismatch::Size { got, expected });
    }
    match spoilt {
        Some(Spoilt { at, value, count }) => Err(Mismatch::NotFinite { row: at / cols, col: at % cols, value, count }),
        None => Ok(()),
    }
}

/// Rejects values outside the element tolerance.
fn check_elements(walk: &Walk, seen: &Seen, reference: &Reference) -> Result<(), Mismatch> {
    let Some(first) = walk.first_wrong else { return Ok(()) };
    let (row, col) = reference.sample.position(first);
    let (got, expected, compared) = (seen.sampled[first], reference.values[first], reference.values.len());
    Err(Mismatch::Element { row, col, got, expected, count: walk.wrong, compared })
}

/// Rejects an output, row or column that is scaled by a factor other than one.
fn check_bias(walk: &Walk, reference: &Reference, bias: &Bias) -> Result<(), Mismatch> {
    let Sample { rows, cols } = &reference.sample;
    bias::check(&walk.of_rows, &walk.of_cols, cols.len(), bias).map_err(|(part, slope, limit)| {
        let part = match part {
            Part::Whole => part,
            Part::Row(row) => Part::Row(rows[row]),
            Part::Column(col) => Part::Column(cols[col]),
        };
        Mismatch::Bias { part, slope, limit }
    })
}

/// Checks signed row and column sums, which cover the elements outside the sample.
///
/// Errors there are assumed to be as large as those measured on the sample.
fn check_sums(seen: &Seen, reference: &Reference, error: f64) -> Result<f64, Mismatch> {
    let Some(projection) = &reference.projection else { return Ok(error) };
    let Some(sums) = &seen.sums else { return Err(Mismatch::Size { got: 0, expected: projection.rows.len() }) };
    match projection.first_off(sums, error) {
        Some((part, got, expected)) => Err(Mismatch::Sum { part, got, expected }),
        None => Ok(error),
    }
}

/// With fewer values than this, the norm may reach the element tolerance: some references are nearly zero or zeroed by
/// an activation.
const FEW: usize = 32;

fn check_norm(walk: &Walk, tolerance: &Tolerance, reference: &Reference) -> Result<(), Mismatch> {
    let is_few = reference.values.len() < FEW;
    let (got, limit) = (walk.error(), if is_few { tolerance.element } else { tolerance.rel_l2 });
    if got > limit { Err(Mismatch::Norm { got, limit }) } else { Ok(()) }
}

/// Accuracy of an output relative to another, element by element.
pub fn accuracy(got: &[f64], reference: &[f64]) -> Accuracy {
    Accuracy::of(reference, got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::Dtype;

    fn example() -> (Output, Reference, Tolerance) {
        let values: Vec<f32> = (0..12).map(|i| (i as f32 - 5.5) / 3.0).collect();
        let reference = values.iter().map(|&v| f64::from(v)).collect();
        let sample = Sample { rows: (0..3).collect(), cols: (0..4).collect() };
        (
            Output { rows: 3, cols: 4, values },
            Reference { sample, values: reference, projection: None },
            Tolerance::new(Dtype::F32, 1, 64),
        )
    }

    #[test]
    fn an_exact_output_passes_with_no_error() {
        let (output, reference, tolerance) = example();
        assert_eq!(judge(&output, &reference, &tolerance), Ok(0.0));
        let accuracy = accuracy(&output.sampled(&reference.sample), &reference.values);
        assert_eq!((accuracy.rel_l2, accuracy.sqnr_db, accuracy.cosine), (0.0, f64::INFINITY, 1.0));
    }

    #[test]
    fn a_wrong_element_is_named_with_both_values() {
        let (mut output, reference, tolerance) = example();
        output.values[6] += 0.01;
        let mismatch = judge(&output, &reference, &tolerance).unwrap_err();
        assert!(matches!(mismatch, Mismatch::Element { row: 1, col: 2, count: 1, compared: 12, .. }), "{mismatch}");
    }

    #[test]
    fn an_unwritten_element_is_not_finite_even_outside_the_sample() {
        let (mut output, mut reference, tolerance) = example();
        reference.sample = Sample { rows: vec![0], cols: vec![0] };
        reference.values.truncate(1);
        output.values[11] = f32::NAN;
        let mismatch = judge(&output, &reference, &tolerance).unwrap_err();
        assert!(matches!(mismatch, Mismatch::NotFinite { row: 2, col: 3, count: 1, .. }), "{mismatch}");
    }

    #[test]
    fn the_first_of_many_that_is_not_finite_is_named() {
        let (rows, cols) = (300, 301);
        let mut output = Output { rows, cols, values: vec![1.0; rows * cols] };
        assert_eq!(check_written(&output), Ok(()));
        (output.values[250 * cols + 7], output.values[299 * cols + 300]) = (f32::INFINITY, f32::NAN);
        let found = check_written(&output).unwrap_err();
        assert!(matches!(found, Mismatch::NotFinite { row: 250, col: 7, count: 2, .. }), "{found}");
    }

    #[test]
    fn small_errors_everywhere_fail_where_one_would_pass() {
        let (few, of_few, tolerance) = example();
        let times = FEW.div_ceil(few.values.len());
        let (rows, cols) = (few.rows * times, few.cols);
        let sample = Sample { rows: (0..rows).collect(), cols: (0..cols).collect() };
        let many = Reference { sample, values: of_few.values.repeat(times), projection: None };
        let shift = (tolerance.element * 0.9) as f32;
        let shifted = |values: &[f32]| values.iter().map(|value| value + shift).collect();
        let output = Output { rows, cols, values: shifted(&few.values.repeat(times)) };
        assert!(matches!(judge(&output, &many, &tolerance), Err(Mismatch::Norm { .. })));
        // With few values each may reach the element tolerance.
        assert!(judge(&Output { values: shifted(&few.values), ..few }, &of_few, &tolerance).is_ok());
    }

    /// Scale errors within the element tolerance, but in one direction.
    #[test]
    fn a_scale_that_is_off_by_little_is_refused_as_a_whole_and_in_one_row_or_column() {
        let (rows, cols) = (64, 48);
        let noise = |at: usize| ((at * 7919) % 101) as f64 / 50.0 - 1.0;
        let values: Vec<f64> = (0..rows * cols).map(|at| ((at * 31) % 97) as f64 / 30.0 - 1.5).collect();
        let sample = Sample { rows: (0..rows).collect(), cols: (0..cols).collect() };
        let reference = Reference { sample, values, projection: None };
        let tolerance = Tolerance { rel_l2: 0.04, element: 0.2, ..Tolerance::default() };
        let bias = Bias { floor: 1e-3, depth: 4096, both_computed: false };
        let judged = |of: &dyn Fn(usize, usize) -> f64| {
            let value = |(at, value): (usize, &f64)| (value * of(at / cols, at % cols) + 4e-3 * noise(at)) as f32;
            let output = Output { rows, cols, values: reference.values.iter().enumerate().map(value).collect() };
            judge_evenly(&output, &reference, &tolerance, &bias)
        };
        let part = |judged| match judged {
            Err(Mismatch::Bias { part, .. }) => part,
            other => panic!("{other:?}"),
        };
        assert!(judged(&|_, _| 1.0).is_ok());
        assert_eq!(part(judged(&|_, _| 1.01)), Part::Whole);
        assert_eq!(part(judged(&|row, _| if row == 5 { 1.02 } else { 1.0 })), Part::Row(5));
        assert_eq!(part(judged(&|_, col| if col == 7 { 0.98 } else { 1.0 })), Part::Column(7));
    }

    /// A wrong row a thousand times smaller than the others: its error is negligible relative to the whole output.
    #[test]
    fn a_quiet_row_is_judged_as_strictly_as_a_loud_one() {
        let (rows, cols) = (4, 256);
        let loud = |at: usize| if at / cols == 2 { 1e-3 } else { 1.0 };
        let values: Vec<f64> = (0..rows * cols).map(|at| loud(at) * (((at * 31) % 97) as f64 / 30.0 - 1.5)).collect();
        let sample = Sample { rows: (0..rows).collect(), cols: (0..cols).collect() };
        let reference = Reference { sample, values, projection: None };
        let values = reference.values.iter().enumerate();
        let wrong = values.map(|(at, &value)| if at == 2 * cols + 9 { 0.05 } else { value as f32 }).collect();
        let output = Output { rows, cols, values: wrong };
        let (tolerance, bias) = (
            Tolerance { rel_l2: 0.04, element: 0.2, ..Tolerance::default() },
            Bias { floor: 1e-3, depth: 64, both_computed: false },
        );
        assert!(judge(&output, &reference, &tolerance).is_ok());
        assert!(judge_evenly(&output, &reference, &tolerance, &bias).is_err());
    }

    #[test]
    fn the_tolerance_grows_with_depth_and_shrinks_with_precision() {
        let at = |dtype, depth| Tolerance::new(dtype, 1, depth).rel_l2;
        assert!(at(Dtype::F32, 16384) > 8.0 * at(Dtype::F32, 64));
        assert!(at(Dtype::F16, 64) < at(Dtype::Bf16, 64));
    }
}
