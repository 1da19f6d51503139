//! Correctness gate, and accuracy relative to the unquantized model.

mod bias;
mod element_tolerance;
mod error_scan;
mod mismatch;
pub(crate) mod projection;
mod row_column_rms;
mod to_digest;
mod tolerance;

use crate::{NonFinite, Output, OutputDigest, OutputSample, Reference};
use error_scan::{ErrorScan, ErrorUnits};
use rayon::prelude::*;
use row_column_rms::RowColumnRms;
use to_digest::find_non_finite;

pub use bias::{Bias, CheckedPart};
pub use calorimeter_recipes::ErrorMetrics;
pub use element_tolerance::{ElementTolerance, LargestErrors, judge_elements};
pub use mismatch::Mismatch;
pub use projection::Projection;
pub use to_digest::ToDigest;
pub use tolerance::Tolerance;
pub(crate) use tolerance::{fast_accumulation_error, tf32_error};

/// Result of a check that passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateResult {
    /// Relative L2 error.
    pub rel_l2: f64,
    /// True if the output is within tolerance only under TF32 rounding of f32 operands.
    pub tf32: bool,
}

/// Compares an output with its reference in double precision; returns the relative error.
pub fn judge(output: &impl ToDigest, reference: &Reference, tolerance: &Tolerance) -> Result<f64, Mismatch> {
    judge_digest(&output.to_digest(reference), reference, tolerance)
}

// Free of generics: generic functions are compiled in the calling crate, which may be built with little optimization.
fn judge_digest(seen: &OutputDigest, reference: &Reference, tolerance: &Tolerance) -> Result<f64, Mismatch> {
    judge_in_units(seen, reference, tolerance, |loudness, _, _| loudness.overall())
}

/// Compares the output of a matmul with its reference; returns the relative error.
///
/// Errors may be proportional to the expected magnitude of the row and column, or to the overall magnitude. The latter
/// matters where an activation zeroes nearly all of a column: the remaining values still carry the rounding errors of
/// the zeroed ones.
pub fn judge_matmul(output: &impl ToDigest, reference: &Reference, tolerance: &Tolerance) -> Result<f64, Mismatch> {
    judge_matmul_digest(&output.to_digest(reference), reference, tolerance)
}

fn judge_matmul_digest(seen: &OutputDigest, reference: &Reference, tolerance: &Tolerance) -> Result<f64, Mismatch> {
    judge_in_units(seen, reference, tolerance, |loudness, row, col| loudness.element(row, col).max(loudness.overall()))
}

fn judge_in_units(
    seen: &OutputDigest,
    reference: &Reference,
    tolerance: &Tolerance,
    unit: impl Fn(&RowColumnRms, usize, usize) -> f64 + Sync,
) -> Result<f64, Mismatch> {
    check_digest(seen, reference)?;
    let loudness = RowColumnRms::new(&reference.values, reference.sample.cols.len());
    let walk = ErrorScan::scan(&seen.sampled, reference, tolerance.element, |row, col| ErrorUnits {
        element: unit(&loudness, row, col),
        bias: loudness.element(row, col).max(loudness.overall()),
        norm: 1.0,
    });
    check_elements(&walk, seen, reference)?;
    // A slope over a few values is meaningless.
    if let Some(slope) = tolerance.slope.filter(|_| reference.values.len() >= bias::MIN_SLOPE_VALUES) {
        check_bias(&walk, reference, &Bias::from_slope(slope, tolerance.computed_depth, tolerance.both_computed))?;
    }
    check_norm(&walk, tolerance, reference)?;
    check_projection(seen, reference, walk.error())
}

/// Compares an output in units of the expected magnitude of each row and column, with an explicit bias limit.
pub fn judge_with_bias(
    output: &impl ToDigest,
    reference: &Reference,
    tolerance: &Tolerance,
    bias: &Bias,
) -> Result<f64, Mismatch> {
    judge_digest_with_bias(&output.to_digest(reference), reference, tolerance, bias)
}

fn judge_digest_with_bias(
    seen: &OutputDigest,
    reference: &Reference,
    tolerance: &Tolerance,
    bias: &Bias,
) -> Result<f64, Mismatch> {
    check_digest(seen, reference)?;
    let loudness = RowColumnRms::upper_bound(&reference.values, reference.sample.cols.len());
    let walk = ErrorScan::scan(&seen.sampled, reference, tolerance.element, |row, col| {
        let unit = loudness.element(row, col);
        ErrorUnits { element: unit, bias: unit, norm: unit }
    });
    check_elements(&walk, seen, reference)?;
    check_bias(&walk, reference, bias)?;
    check_norm(&walk, tolerance, reference)?;
    check_projection(seen, reference, walk.error())
}

/// Compares an output, rotated back to set 0, element by element with an output of set 0 whose sample passed the gate.
///
/// Both may deviate from the reference by the element tolerance, so their difference may be twice that.
pub fn judge_against_output(output: &Output, right: &Output, tolerance: &Tolerance) -> Result<(), Mismatch> {
    check_output(output)?;
    let cols = right.cols;
    let loudness = RowColumnRms::new(&right.values, cols);
    let rows = output.values.par_chunks(cols).zip(right.values.par_chunks(cols)).enumerate();
    let wrong = rows.map(|(row, (got, right))| {
        let wrong = |(col, (got, right)): (usize, (&f32, &f32))| {
            let (got, right) = (f64::from(*got), f64::from(*right));
            let unit = right.abs().max(loudness.element(row, col)).max(loudness.overall());
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
fn check_output(output: &Output) -> Result<(), Mismatch> {
    check_size_and_finite([output.rows, output.cols], output.values.len(), find_non_finite(&output.values))
}

/// Rejects a digest of the wrong size, with non-finite values, or with fewer samples than its reference.
fn check_digest(seen: &OutputDigest, reference: &Reference) -> Result<(), Mismatch> {
    check_size_and_finite(seen.size, seen.count, seen.non_finite)?;
    let (got, expected) = (seen.sampled.len(), reference.values.len());
    if got == expected { Ok(()) } else { Err(Mismatch::Size { got, expected }) }
}

fn check_size_and_finite([rows, cols]: [usize; 2], got: usize, spoilt: Option<NonFinite>) -> Result<(), Mismatch> {
    let expected = rows * cols;
    if got != expected {
        return Err(Mismatch::Size { got, expected });
    }
    match spoilt {
        Some(NonFinite { index: at, value, count }) => {
            Err(Mismatch::NotFinite { row: at / cols, col: at % cols, value, count })
        }
        None => Ok(()),
    }
}

/// Rejects values outside the element tolerance.
fn check_elements(walk: &ErrorScan, seen: &OutputDigest, reference: &Reference) -> Result<(), Mismatch> {
    let Some(first) = walk.first_wrong else { return Ok(()) };
    let (row, col) = reference.sample.position(first);
    let (got, expected, compared) = (seen.sampled[first], reference.values[first], reference.values.len());
    Err(Mismatch::Element { row, col, got, expected, count: walk.wrong_count, compared })
}

/// Rejects an output, row or column that is scaled by a factor other than one.
fn check_bias(walk: &ErrorScan, reference: &Reference, bias: &Bias) -> Result<(), Mismatch> {
    let OutputSample { rows, cols } = &reference.sample;
    bias::check(&walk.row_sums, &walk.col_sums, cols.len(), bias).map_err(|(part, slope, limit)| {
        let part = match part {
            CheckedPart::Whole => part,
            CheckedPart::Row(row) => CheckedPart::Row(rows[row]),
            CheckedPart::Column(col) => CheckedPart::Column(cols[col]),
        };
        Mismatch::Bias { part, slope, limit }
    })
}

/// Checks signed row and column sums, which cover the elements outside the sample.
///
/// Errors there are assumed to be as large as those measured on the sample.
fn check_projection(seen: &OutputDigest, reference: &Reference, error: f64) -> Result<f64, Mismatch> {
    let Some(projection) = &reference.projection else { return Ok(error) };
    let Some(sums) = &seen.sums else { return Err(Mismatch::Size { got: 0, expected: projection.rows.len() }) };
    match projection.first_mismatch(sums, error) {
        Some((part, got, expected)) => Err(Mismatch::Sum { part, got, expected }),
        None => Ok(error),
    }
}

/// With fewer values than this, the norm may reach the element tolerance: some references are nearly zero or zeroed by
/// an activation.
const MIN_NORM_VALUES: usize = 32;

fn check_norm(walk: &ErrorScan, tolerance: &Tolerance, reference: &Reference) -> Result<(), Mismatch> {
    let is_few = reference.values.len() < MIN_NORM_VALUES;
    let (got, limit) = (walk.error(), if is_few { tolerance.element } else { tolerance.rel_l2 });
    if got > limit { Err(Mismatch::Norm { got, limit }) } else { Ok(()) }
}

/// Accuracy of an output relative to another, element by element.
pub fn accuracy(got: &[f64], reference: &[f64]) -> ErrorMetrics {
    ErrorMetrics::compare(reference, got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::Dtype;

    fn example() -> (Output, Reference, Tolerance) {
        let values: Vec<f32> = (0..12).map(|i| (i as f32 - 5.5) / 3.0).collect();
        let reference = values.iter().map(|&v| f64::from(v)).collect();
        let sample = OutputSample { rows: (0..3).collect(), cols: (0..4).collect() };
        (
            Output { rows: 3, cols: 4, values },
            Reference { sample, values: reference, projection: None },
            Tolerance::new(Dtype::F32, 1, 64),
        )
    }

    #[test]
    fn exact_output_passes_with_zero_error() {
        let (output, reference, tolerance) = example();
        assert_eq!(judge(&output, &reference, &tolerance), Ok(0.0));
        let accuracy = accuracy(&output.sampled(&reference.sample), &reference.values);
        assert_eq!((accuracy.rel_l2, accuracy.sqnr_db, accuracy.cosine), (0.0, f64::INFINITY, 1.0));
    }

    #[test]
    fn wrong_element_is_reported_with_position() {
        let (mut output, reference, tolerance) = example();
        output.values[6] += 0.01;
        let mismatch = judge(&output, &reference, &tolerance).unwrap_err();
        assert!(matches!(mismatch, Mismatch::Element { row: 1, col: 2, count: 1, compared: 12, .. }), "{mismatch}");
    }

    #[test]
    fn unwritten_elements_outside_the_sample_are_found() {
        let (mut output, mut reference, tolerance) = example();
        reference.sample = OutputSample { rows: vec![0], cols: vec![0] };
        reference.values.truncate(1);
        output.values[11] = f32::NAN;
        let mismatch = judge(&output, &reference, &tolerance).unwrap_err();
        assert!(matches!(mismatch, Mismatch::NotFinite { row: 2, col: 3, count: 1, .. }), "{mismatch}");
    }

    #[test]
    fn first_non_finite_element_is_reported() {
        let (rows, cols) = (300, 301);
        let mut output = Output { rows, cols, values: vec![1.0; rows * cols] };
        assert_eq!(check_output(&output), Ok(()));
        (output.values[250 * cols + 7], output.values[299 * cols + 300]) = (f32::INFINITY, f32::NAN);
        let found = check_output(&output).unwrap_err();
        assert!(matches!(found, Mismatch::NotFinite { row: 250, col: 7, count: 2, .. }), "{found}");
    }

    #[test]
    fn many_small_errors_fail_the_norm() {
        let (few, of_few, tolerance) = example();
        let times = MIN_NORM_VALUES.div_ceil(few.values.len());
        let (rows, cols) = (few.rows * times, few.cols);
        let sample = OutputSample { rows: (0..rows).collect(), cols: (0..cols).collect() };
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
    fn slightly_wrong_scales_fail_the_bias_check() {
        let (rows, cols) = (64, 48);
        let noise = |at: usize| ((at * 7919) % 101) as f64 / 50.0 - 1.0;
        let values: Vec<f64> = (0..rows * cols).map(|at| ((at * 31) % 97) as f64 / 30.0 - 1.5).collect();
        let sample = OutputSample { rows: (0..rows).collect(), cols: (0..cols).collect() };
        let reference = Reference { sample, values, projection: None };
        let tolerance = Tolerance { rel_l2: 0.04, element: 0.2, ..Tolerance::default() };
        let bias = Bias { floor: 1e-3, depth: 4096, both_computed: false };
        let judged = |of: &dyn Fn(usize, usize) -> f64| {
            let value = |(at, value): (usize, &f64)| (value * of(at / cols, at % cols) + 4e-3 * noise(at)) as f32;
            let output = Output { rows, cols, values: reference.values.iter().enumerate().map(value).collect() };
            judge_with_bias(&output, &reference, &tolerance, &bias)
        };
        let part = |judged| match judged {
            Err(Mismatch::Bias { part, .. }) => part,
            other => panic!("{other:?}"),
        };
        assert!(judged(&|_, _| 1.0).is_ok());
        assert_eq!(part(judged(&|_, _| 1.01)), CheckedPart::Whole);
        assert_eq!(part(judged(&|row, _| if row == 5 { 1.02 } else { 1.0 })), CheckedPart::Row(5));
        assert_eq!(part(judged(&|_, col| if col == 7 { 0.98 } else { 1.0 })), CheckedPart::Column(7));
    }

    /// A wrong row a thousand times smaller than the others: its error is negligible relative to the whole output.
    #[test]
    fn small_rows_are_judged_as_strictly() {
        let (rows, cols) = (4, 256);
        let loud = |at: usize| if at / cols == 2 { 1e-3 } else { 1.0 };
        let values: Vec<f64> = (0..rows * cols).map(|at| loud(at) * (((at * 31) % 97) as f64 / 30.0 - 1.5)).collect();
        let sample = OutputSample { rows: (0..rows).collect(), cols: (0..cols).collect() };
        let reference = Reference { sample, values, projection: None };
        let values = reference.values.iter().enumerate();
        let wrong = values.map(|(at, &value)| if at == 2 * cols + 9 { 0.05 } else { value as f32 }).collect();
        let output = Output { rows, cols, values: wrong };
        let (tolerance, bias) = (
            Tolerance { rel_l2: 0.04, element: 0.2, ..Tolerance::default() },
            Bias { floor: 1e-3, depth: 64, both_computed: false },
        );
        assert!(judge(&output, &reference, &tolerance).is_ok());
        assert!(judge_with_bias(&output, &reference, &tolerance, &bias).is_err());
    }

    #[test]
    fn tolerance_grows_with_depth_and_roundoff() {
        let at = |dtype, depth| Tolerance::new(dtype, 1, depth).rel_l2;
        assert!(at(Dtype::F32, 16384) > 8.0 * at(Dtype::F32, 64));
        assert!(at(Dtype::F16, 64) < at(Dtype::Bf16, 64));
    }
}
