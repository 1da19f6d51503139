//! Whether an output is right, and how far a scheme is from the unquantised model.

mod bias;
mod loudness;
pub(crate) mod projection;

use crate::{Output, Reference, Sample};
use calorimeter_recipes::Dtype;
use calorimeter_recipes::format::Format;

pub use bias::{Bias, Part};
pub use calorimeter_recipes::Accuracy;
pub use projection::Projection;

/// How far a correct output may be from its reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Bound of the relative error in the Euclidean norm.
    pub rel_l2: f64,
    /// Bound of one element's error, relative to the larger of its reference and the reference's root mean square.
    pub element: f64,
}

/// Unit roundoff of the accumulators: every implementation sums in f32.
const ACCUMULATOR: f64 = 1.0 / (1u64 << 24) as f64;

/// How far TF32, the f32 operand type of tensor cores, is from f32: what does not fit is cut off, not rounded.
const TF32: f64 = 1.0 / (1u64 << 10) as f64;

impl Tolerance {
    /// For outputs rounded `roundings` times in a row to a dtype, after sums of `depth` products.
    pub fn new(dtype: Dtype, roundings: u32, depth: u64) -> Self {
        // Independent rounding errors add in quadrature; so do those of a sum's steps.
        let rounding = dtype.unit_roundoff() * f64::from(roundings).sqrt();
        let summing = ACCUMULATOR * (depth as f64).sqrt();
        // An error is at most about three times its root mean square, one element among millions about twice that.
        Self { rel_l2: 1.5 * rounding + 4.0 * summing, element: 4.0 * rounding + 16.0 * summing }
    }

    /// The same where inputs of `layers` layers in a row, `width` numbers wide, are quantised after errors of this size.
    /// Those that come to lie on the other side of a boundary are off by a whole step: on the whole that is the geometric
    /// mean of a rounding and a step, and in one row it may be a single step among `width` numbers. Where a scale is the
    /// tensor's and the reference does not know the `whole`, its largest value may be elsewhere: all are off by a step.
    pub fn with_requantised(self, before: f64, layers: u32, width: u64, format: Format, whole: bool) -> Self {
        let step = format.typical_step();
        let known = whole || !format.looks_at_the_whole_tensor();
        let crossed = if known { (before * step).sqrt() } else { step };
        let error = (crossed + step / (width as f64).sqrt()) * f64::from(layers).sqrt();
        Self { rel_l2: self.rel_l2 + error, element: self.element + 6.0 * error }
    }

    /// The same where both operands of every product were rounded to TF32, in `products` layers in a row.
    pub fn with_tf32(self, products: u32) -> Self {
        let rounding = tf32_rounding(products);
        Self { rel_l2: self.rel_l2 + 1.5 * rounding, element: self.element + 4.0 * rounding }
    }
}

/// The error of `products` layers in a row with both operands of every product rounded to TF32.
pub(crate) fn tf32_rounding(products: u32) -> f64 {
    TF32 * f64::from(2 * products).sqrt()
}

impl Bias {
    /// For outputs in a dtype after layers in a row whose sums have so many products.
    pub fn new(dtype: Dtype, depths: &[u64]) -> Self {
        // One of the roundings to the dtype may cut off, and tensor cores cut off each step of their sums.
        let sums = ACCUMULATOR * depths.iter().sum::<u64>() as f64;
        Self { floor: dtype.unit_roundoff() + sums, depth: depths.iter().copied().min().unwrap_or(1) }
    }

    /// The same where operands are cut to TF32: both lose half a step, and so on in `layers` layers in a row.
    pub fn with_tf32(self, layers: u32) -> Self {
        Self { floor: self.floor + TF32 * f64::from(layers), ..self }
    }
}

/// Why an output is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Mismatch {
    /// Not the size it should have.
    #[error("the output has {got} values instead of {expected}")]
    Size {
        /// Values found.
        got: usize,
        /// Values expected.
        expected: usize,
    },
    /// Not a number, infinite, or never written: outputs are filled with NaN before the run.
    #[error("{count} values are not finite; the first is {value} at row {row}, column {col}")]
    NotFinite {
        /// Row of the first.
        row: usize,
        /// Column of the first.
        col: usize,
        /// The first.
        value: f32,
        /// How many there are.
        count: usize,
    },
    /// Too far from the reference in one place.
    #[error(
        "{count} of {compared} compared values are wrong; the first, at row {row}, column {col}, is {got:e} instead of {expected:e}"
    )]
    Element {
        /// Row of the first.
        row: usize,
        /// Column of the first.
        col: usize,
        /// What it is.
        got: f64,
        /// What it should be.
        expected: f64,
        /// How many there are.
        count: usize,
        /// How many were compared.
        compared: usize,
    },
    /// Too large or too small throughout, as by a wrong scale.
    #[error("{part} is {slope:.5} times what it should be, more than {limit:.1e} from 1")]
    Bias {
        /// Of what.
        part: Part,
        /// The least-squares slope on the reference.
        slope: f64,
        /// How far from one it may be.
        limit: f64,
    },
    /// Wrong where it was not compared value by value.
    #[error("{part} is wrong: under random signs its values add up to {got:e} instead of {expected:e}")]
    Sum {
        /// Of what.
        part: Part,
        /// What its values add up to.
        got: f64,
        /// What they should.
        expected: f64,
    },
    /// Too far from the reference overall.
    #[error("the relative error is {got:.2e}, above {limit:.2e}")]
    Norm {
        /// What it is.
        got: f64,
        /// What it may be.
        limit: f64,
    },
}

/// What the gate let through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The relative error in the Euclidean norm.
    pub rel_l2: f64,
    /// Whether it is right only if f32 operands were rounded to TF32.
    pub tf32: bool,
}

/// Compares an output with what its own operands should give; answers the relative error.
pub fn judge(output: &Output, reference: &Reference, tolerance: &Tolerance) -> Result<f64, Mismatch> {
    check_written(output)?;
    let scale = rms(&reference.values);
    let got = output.sampled(&reference.sample);
    check_elements(&got, reference, tolerance, |_| scale)?;
    check_norm(&got, &reference.values, tolerance)
}

/// The same in units of the loudness that rows and columns have, and with a test of bias.
pub fn judge_evenly(
    output: &Output,
    reference: &Reference,
    tolerance: &Tolerance,
    bias: &Bias,
) -> Result<f64, Mismatch> {
    check_written(output)?;
    let got = output.sampled(&reference.sample);
    let loudness = loudness::of(&reference.values, &reference.sample);
    check_elements(&got, reference, tolerance, |at| loudness[at])?;
    let even = |values: &[f64]| -> Vec<f64> {
        values.iter().zip(&loudness).map(|(value, &loud)| if loud > 0.0 { value / loud } else { *value }).collect()
    };
    let (got, values) = (even(&got), even(&reference.values));
    let Sample { rows, cols } = &reference.sample;
    bias::check(&got, &values, cols.len(), bias).map_err(|(part, slope, limit)| {
        let part = match part {
            Part::Whole => part,
            Part::Row(row) => Part::Row(rows[row]),
            Part::Column(col) => Part::Column(cols[col]),
        };
        Mismatch::Bias { part, slope, limit }
    })?;
    let error = check_norm(&got, &values, tolerance)?;
    // Errors are as large elsewhere as where they were measured.
    match reference.projection.as_ref().and_then(|projection| projection.first_off(output, error)) {
        Some((part, got, expected)) => Err(Mismatch::Sum { part, got, expected }),
        None => Ok(error),
    }
}

/// Refuses an output of another size, or one that holds what is no number.
fn check_written(output: &Output) -> Result<(), Mismatch> {
    let expected = output.rows * output.cols;
    if output.values.len() != expected {
        return Err(Mismatch::Size { got: output.values.len(), expected });
    }
    if let Some(first) = output.values.iter().position(|value| !value.is_finite()) {
        let count = output.values.iter().filter(|value| !value.is_finite()).count();
        let (row, col) = (first / output.cols, first % output.cols);
        return Err(Mismatch::NotFinite { row, col, value: output.values[first], count });
    }
    Ok(())
}

/// Refuses values that are further off than their references or their loudness allow.
fn check_elements(
    got: &[f64],
    reference: &Reference,
    tolerance: &Tolerance,
    loudness: impl Fn(usize) -> f64,
) -> Result<(), Mismatch> {
    let wrong = |&at: &usize| {
        let (got, expected) = (got[at], reference.values[at]);
        (got - expected).abs() > tolerance.element * expected.abs().max(loudness(at))
    };
    let mut bad = (0..got.len()).filter(wrong);
    let Some(first) = bad.next() else { return Ok(()) };
    let (row, col) = reference.sample.position(first);
    let (expected, compared) = (reference.values[first], got.len());
    Err(Mismatch::Element { row, col, got: got[first], expected, count: 1 + bad.count(), compared })
}

fn check_norm(got: &[f64], reference: &[f64], tolerance: &Tolerance) -> Result<f64, Mismatch> {
    let error = accuracy(got, reference).rel_l2;
    if error > tolerance.rel_l2 {
        return Err(Mismatch::Norm { got: error, limit: tolerance.rel_l2 });
    }
    Ok(error)
}

/// The error of an output that was computed another way, element by element.
pub fn accuracy(got: &[f64], reference: &[f64]) -> Accuracy {
    Accuracy::of(reference, got)
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|v| v * v).sum::<f64>() / values.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn small_errors_everywhere_fail_where_one_would_pass() {
        let (mut output, reference, tolerance) = example();
        let shift = (tolerance.element * 0.9) as f32;
        output.values.iter_mut().for_each(|v| *v += shift);
        assert!(matches!(judge(&output, &reference, &tolerance), Err(Mismatch::Norm { .. })));
    }

    /// A quarter of what the distance allows, all of it one way.
    #[test]
    fn a_scale_that_is_off_by_little_is_refused_as_a_whole_and_in_one_row_or_column() {
        let (rows, cols) = (64, 48);
        let noise = |at: usize| ((at * 7919) % 101) as f64 / 50.0 - 1.0;
        let values: Vec<f64> = (0..rows * cols).map(|at| ((at * 31) % 97) as f64 / 30.0 - 1.5).collect();
        let sample = Sample { rows: (0..rows).collect(), cols: (0..cols).collect() };
        let reference = Reference { sample, values, projection: None };
        let tolerance = Tolerance { rel_l2: 0.04, element: 0.2 };
        let bias = Bias { floor: 1e-3, depth: 4096 };
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

    /// A row a thousand times as quiet as the others, and wrong: beside them its error is nothing.
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
        let (tolerance, bias) = (Tolerance { rel_l2: 0.04, element: 0.2 }, Bias { floor: 1e-3, depth: 64 });
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
