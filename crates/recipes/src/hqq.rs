//! Half-quadratic quantization: each group's zero is moved, with the scale held, to where the error is sparse.
//!
//! The loop stops for the whole tensor together, when its mean error no longer falls; so each group goes through all its
//! iterations while it is in cache, and the one where the tensor stops is picked afterwards. All steps are in f32.

use crate::Dtype;
use crate::extremes::extremes;
use crate::format::{Format, HqqIterate, Zero};
use crate::quantized::Quantized;
use crate::scalar::hqq::{ITERATIONS, code, error, first_zero, outlier, stretch, wished_zero};
use crate::{Element, FloatType, packing};
use pulp::NullaryFnOnce;
use rayon::prelude::*;

/// Partial sums of a group: lane `i` takes every sixteenth number, and kernels add in the same order.
pub(crate) const LANES: usize = 16;

/// The errors below which no number has an outlier, whatever the iteration: there |e|^-0.3 / beta exceeds e.
const NO_OUTLIER: f32 = 0.125;

/// The inverse weights of the iterations: beta is 10 and grows by a hundredth.
pub(crate) fn inverse_betas() -> [f32; ITERATIONS] {
    let mut beta = 10.0f64;
    std::array::from_fn(|_| {
        let inverse = (1.0 / beta) as f32;
        beta *= 1.01;
        inverse
    })
}

/// One group's way through the iterations.
#[derive(Clone, Copy)]
struct Course {
    stretch: f32,
    /// Before the first iteration and after each.
    zeros: [f32; ITERATIONS + 1],
}

pub(crate) fn quantize(values: &[f32], cols: usize, format: Format, iterate: HqqIterate) -> Quantized {
    let (rows, group) = (values.len() / cols, format.group(cols));
    let per_row = cols.div_ceil(group);
    let most = format.terms().most;
    let (betas, arch) = (inverse_betas(), pulp::Arch::new());
    let mut courses = vec![None; rows * per_row];
    let errors: Vec<[f64; ITERATIONS]> = courses
        .par_chunks_mut(per_row)
        .zip(values.par_chunks(cols))
        .map_init(
            || vec![0.0; group.next_multiple_of(LANES)],
            |padded, (courses, values)| {
                let mut errors = [0.0; ITERATIONS];
                for (course, values) in courses.iter_mut().zip(values.chunks(group)) {
                    padded[..values.len()].copy_from_slice(values);
                    padded[values.len()..].fill(0.0);
                    let (values, betas, errors) = (&padded[..group], &betas, &mut errors);
                    *course = arch.dispatch(Iterations { values, most, betas, errors });
                }
                errors
            },
        )
        .collect();
    let kept = kept_iterate(&errors, iterate);
    let mut codes = vec![0; rows * format.words_per_row(cols)];
    let bytes = || vec![0; format.words_per_row(cols) * 32 / format.bits() as usize];
    let outputs = codes.par_chunks_mut(format.words_per_row(cols)).zip(courses.par_chunks(per_row));
    outputs.zip(values.par_chunks(cols)).for_each_init(bytes, |bytes, ((codes, courses), values)| {
        arch.dispatch(Codes { values, group, most, courses, kept, bytes, bits: format.bits(), codes });
    });
    let scales = courses.iter().map(|course| course.map_or(f32::NAN, |c| stored(format.scale, 1.0 / c.stretch)));
    let zeros = courses.iter().map(|course| course.map_or(0.0, |c| stored_zero(&format, c.zeros[kept], c.stretch)));
    let (scales, zeros) = (scales.collect(), zeros.collect());
    Quantized { format, rows, cols, codes, scales, zeros, outer: Vec::new() }
}

/// Takes a group through its iterations and adds its errors to the tensor's; none if a number is not finite.
struct Iterations<'a> {
    values: &'a [f32],
    most: i32,
    betas: &'a [f32; ITERATIONS],
    errors: &'a mut [f64; ITERATIONS],
}

impl NullaryFnOnce for Iterations<'_> {
    type Output = Option<Course>;

    #[inline(always)]
    fn call(self) -> Option<Course> {
        let Self { values, most, betas, errors } = self;
        let (low, high) = extremes(values)?;
        // Numbers so far apart that their distance is infinite share no scale.
        let stretch = Some(stretch(low, high, most)).filter(|&stretch| stretch > 0.0)?;
        let mut zero = first_zero(low, stretch, most, 0);
        let mut zeros = [zero; ITERATIONS + 1];
        for (iteration, &inverse_beta) in betas.iter().enumerate() {
            let (mut wished, mut missed, mut farthest) = ([0.0f32; LANES], [0.0f32; LANES], [0u32; LANES]);
            let chunks = values.as_chunks::<LANES>().0;
            for chunk in chunks {
                for lane in 0..LANES {
                    let x = chunk[lane];
                    let code = code(x, stretch, zero, most, 0);
                    let error = error(x, code, stretch, zero);
                    let magnitude = error.to_bits() & 0x7FFF_FFFF;
                    missed[lane] += f32::from_bits(magnitude);
                    farthest[lane] = farthest[lane].max(magnitude);
                    wished[lane] += wished_zero(x, code, 0.0, stretch, 0);
                }
            }
            if farthest.into_iter().max() > Some(NO_OUTLIER.to_bits()) {
                wished = [0.0; LANES];
                for chunk in chunks {
                    for lane in 0..LANES {
                        let x = chunk[lane];
                        let code = code(x, stretch, zero, most, 0);
                        let outlier = outlier(error(x, code, stretch, zero), inverse_beta, 0);
                        wished[lane] += wished_zero(x, code, outlier, stretch, 0);
                    }
                }
            }
            errors[iteration] += f64::from(missed.into_iter().sum::<f32>());
            zero = wished.into_iter().sum::<f32>() / values.len() as f32;
            zeros[iteration + 1] = zero;
        }
        Some(Course { stretch, zeros })
    }
}

/// Finds the codes of a row under the zeros that are kept, and packs them.
struct Codes<'a> {
    values: &'a [f32],
    group: usize,
    most: i32,
    courses: &'a [Option<Course>],
    kept: usize,
    bytes: &'a mut [u8],
    bits: u32,
    codes: &'a mut [u32],
}

impl NullaryFnOnce for Codes<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { values, group, most, courses, kept, bytes, bits, codes } = self;
        for ((course, values), bytes) in courses.iter().zip(values.chunks(group)).zip(bytes.chunks_mut(group)) {
            let Some(Course { stretch, zeros }) = course else {
                bytes.fill(0);
                continue;
            };
            let zero = zeros[kept];
            for (byte, &x) in bytes.iter_mut().zip(values) {
                *byte = code(x, *stretch, zero, most, 0) as u8;
            }
            bytes[values.len().min(group)..].fill(code(0.0, *stretch, zero, most, 0) as u8);
        }
        packing::pack(bytes, bits, codes);
    }
}

/// Which of the zeros is kept: the one after the first iteration that did not lower the tensor's error, or the best.
pub(crate) fn kept_iterate(errors: &[[f64; ITERATIONS]], iterate: HqqIterate) -> usize {
    let total: [f64; ITERATIONS] = std::array::from_fn(|i| errors.iter().map(|row| row[i]).sum());
    // An iteration's error is that of the zero before it.
    let stopped = (1..ITERATIONS).find(|&i| total[i] >= total[i - 1]).unwrap_or(ITERATIONS - 1);
    match iterate {
        HqqIterate::Last => stopped + 1,
        HqqIterate::Best => (0..=stopped).min_by(|&a, &b| total[a].total_cmp(&total[b])).unwrap_or(0),
    }
}

/// A scale or zero rounded to the type that it is stored in.
pub(crate) fn stored(element: Element, number: f32) -> f32 {
    match element {
        Element::Float(dtype) => dtype.round(number),
        _ => Dtype::F32.round(number),
    }
}

/// A zero in the units that the format stores it in.
pub(crate) fn stored_zero(format: &Format, zero: f32, stretch: f32) -> f32 {
    match format.zero {
        Zero::InUnits(element) => stored(element, (format.middle() - zero) * (1.0 / stretch)),
        Zero::InSteps(element) => stored(element, zero),
        Zero::None => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Grouping;

    /// A group's zeros and errors, one number after the other, each with its outlier.
    fn plainly(values: &[f32], most: i32) -> (Course, [f64; ITERATIONS]) {
        let (low, high) = extremes(values).unwrap();
        let stretch = stretch(low, high, most);
        let mut zeros = [first_zero(low, stretch, most, 0); ITERATIONS + 1];
        let errors = std::array::from_fn(|iteration| {
            let (mut wished, mut missed) = ([0.0f32; LANES], [0.0f32; LANES]);
            for (i, &x) in values.iter().enumerate() {
                let code = code(x, stretch, zeros[iteration], most, 0);
                let error = error(x, code, stretch, zeros[iteration]);
                missed[i % LANES] += error.abs();
                let outlier = outlier(error, inverse_betas()[iteration], 0);
                wished[i % LANES] += wished_zero(x, code, outlier, stretch, 0);
            }
            zeros[iteration + 1] = wished.into_iter().sum::<f32>() / values.len() as f32;
            f64::from(missed.into_iter().sum::<f32>())
        });
        (Course { stretch, zeros }, errors)
    }

    #[test]
    fn skipping_outliers_where_there_are_none_changes_no_bit() {
        let uniform = |i: usize| ((i as u32).wrapping_mul(0x9E37_79B9) >> 8) as f32 / (1 << 23) as f32 - 1.0;
        for (bits, group, cols, size) in [(4, 64, 192, 0.02), (4, 32, 77, 4.0), (2, 64, 128, 1.0), (8, 32, 64, 900.0)] {
            let element = Element::Float(Dtype::F32);
            let format = Format::hqq(bits, Grouping::Block(group), Dtype::F32, Dtype::F32, Zero::InUnits(element));
            let (most, group) = (format.terms().most, group as usize);
            let values: Vec<f32> = (0..cols * 8).map(|i| (uniform(i) + uniform(i * 7 + 3).powi(9)) * size).collect();
            let mut rows_of_courses = Vec::new();
            let mut errors = Vec::new();
            for row in values.chunks(cols) {
                let mut of_row = [0.0; ITERATIONS];
                for values in row.chunks(group) {
                    let mut filled_up = values.to_vec();
                    filled_up.resize(group, 0.0);
                    let (course, missed) = plainly(&filled_up, most);
                    of_row.iter_mut().zip(missed).for_each(|(sum, missed)| *sum += missed);
                    rows_of_courses.push((course, values));
                }
                errors.push(of_row);
            }
            for iterate in [HqqIterate::Last, HqqIterate::Best] {
                let quantized = quantize(&values, cols, format, iterate);
                let kept = kept_iterate(&errors, iterate);
                let mut codes = Vec::new();
                for (at, (Course { stretch, zeros }, values)) in rows_of_courses.iter().enumerate() {
                    codes.extend(values.iter().map(|&x| code(x, *stretch, zeros[kept], most, 0) as u8));
                    assert_eq!(quantized.scales[at].to_bits(), (1.0 / stretch).to_bits());
                    assert_eq!(quantized.zeros[at].to_bits(), stored_zero(&format, zeros[kept], *stretch).to_bits());
                }
                assert_eq!(quantized.codes(), codes);
            }
        }
    }
}
