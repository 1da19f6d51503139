//! Half-quadratic quantization: optimizes the zero point of each group for a sparse error at a fixed scale.
//!
//! The loop stops for the whole tensor at once, when its mean error no longer falls. Each group therefore runs all
//! iterations while it is in cache, and the stopping iteration is selected afterwards. All steps are in f32.

use crate::Dtype;
use crate::format::{Format, HqqIterate, ZeroPoint};
use crate::min_max::min_max;
use crate::quantized_tensor::QuantizedTensor;
use crate::scalar::hqq::{ITERATIONS, code, error, initial_zero_point, inverse_scale, outlier, target_zero_point};
use crate::scalar::rules::QuantParams;
use crate::{Element, FloatType, packing};
use pulp::NullaryFnOnce;
use rayon::prelude::*;

/// Accumulators per group: lane `i` takes every sixteenth value. Device kernels add in this order too.
pub(crate) const LANES: usize = 16;

/// Smallest error that can have an outlier; below it |e|^-0.3 / beta exceeds |e| in every iteration.
const MIN_OUTLIER_ERROR: f32 = 0.125;

/// Inverse weights 1 / beta of the iterations: beta starts at 10 and grows by 1 % per iteration.
pub(crate) fn inverse_betas() -> [f32; ITERATIONS] {
    let mut beta = 10.0f64;
    std::array::from_fn(|_| {
        let inverse = (1.0 / beta) as f32;
        beta *= 1.01;
        inverse
    })
}

/// Inverse scale and zero points of a group over all iterations.
#[derive(Clone, Copy)]
struct HqqTrace {
    inverse_scale: f32,
    /// Zero point before the first iteration and after each.
    zeros: [f32; ITERATIONS + 1],
}

pub(crate) fn quantize(values: &[f32], cols: usize, format: Format, iterate: HqqIterate) -> QuantizedTensor {
    let (rows, group) = (values.len() / cols, format.group_size(cols));
    let per_row = cols.div_ceil(group);
    let max_value = QuantParams::of_format(&format).max;
    let (betas, arch) = (inverse_betas(), pulp::Arch::new());
    let mut traces = vec![None; rows * per_row];
    let errors: Vec<[f64; ITERATIONS]> = traces
        .par_chunks_mut(per_row)
        .zip(values.par_chunks(cols))
        .map_init(
            || vec![0.0; group.next_multiple_of(LANES)],
            |padded, (traces, values)| {
                let mut errors = [0.0; ITERATIONS];
                for (trace, values) in traces.iter_mut().zip(values.chunks(group)) {
                    padded[..values.len()].copy_from_slice(values);
                    padded[values.len()..].fill(0.0);
                    let (values, betas, errors) = (&padded[..group], &betas, &mut errors);
                    *trace = arch.dispatch(HqqGroupTask { values, max_value, betas, errors });
                }
                errors
            },
        )
        .collect();
    let iteration = select_iteration(&errors, iterate);
    let mut codes = vec![0; rows * format.words_per_row(cols)];
    let bytes = || vec![0; format.words_per_row(cols) * 32 / format.bits() as usize];
    let outputs = codes.par_chunks_mut(format.words_per_row(cols)).zip(traces.par_chunks(per_row));
    outputs.zip(values.par_chunks(cols)).for_each_init(bytes, |bytes, ((codes, traces), values)| {
        arch.dispatch(HqqRowTask {
            values,
            group,
            max_value,
            traces,
            selected: iteration,
            bytes,
            bits: format.bits(),
            codes,
        });
    });
    let scales =
        traces.iter().map(|trace| trace.map_or(f32::NAN, |c| round_to_element(format.scale, 1.0 / c.inverse_scale)));
    let zeros = traces
        .iter()
        .map(|trace| trace.map_or(0.0, |c| round_zero_point(&format, c.zeros[iteration], c.inverse_scale)));
    let (scales, zeros) = (scales.collect(), zeros.collect());
    QuantizedTensor { format, rows, cols, codes, scales, zeros, outer_scales: Vec::new() }
}

/// Runs all iterations of a group and adds its errors to the sums of its row; `None` if a value is not finite.
struct HqqGroupTask<'a> {
    values: &'a [f32],
    max_value: i32,
    betas: &'a [f32; ITERATIONS],
    errors: &'a mut [f64; ITERATIONS],
}

impl NullaryFnOnce for HqqGroupTask<'_> {
    type Output = Option<HqqTrace>;

    #[inline(always)]
    fn call(self) -> Option<HqqTrace> {
        let Self { values, max_value, betas, errors } = self;
        let (low, high) = min_max(values)?;
        // A range that overflows f32 has no scale.
        let inverse_scale = Some(inverse_scale(low, high, max_value)).filter(|&inverse_scale| inverse_scale > 0.0)?;
        let mut zero = initial_zero_point(low, inverse_scale, max_value, 0);
        let mut zeros = [zero; ITERATIONS + 1];
        for (iteration, &inverse_beta) in betas.iter().enumerate() {
            let (mut zero_sums, mut error_sums, mut max_errors) = ([0.0f32; LANES], [0.0f32; LANES], [0u32; LANES]);
            let chunks = values.as_chunks::<LANES>().0;
            for chunk in chunks {
                for lane in 0..LANES {
                    let x = chunk[lane];
                    let code = code(x, inverse_scale, zero, max_value, 0);
                    let error = error(x, code, inverse_scale, zero);
                    let magnitude = error.to_bits() & 0x7FFF_FFFF;
                    error_sums[lane] += f32::from_bits(magnitude);
                    max_errors[lane] = max_errors[lane].max(magnitude);
                    zero_sums[lane] += target_zero_point(x, code, 0.0, inverse_scale, 0);
                }
            }
            if max_errors.into_iter().max() > Some(MIN_OUTLIER_ERROR.to_bits()) {
                zero_sums = [0.0; LANES];
                for chunk in chunks {
                    for lane in 0..LANES {
                        let x = chunk[lane];
                        let code = code(x, inverse_scale, zero, max_value, 0);
                        let outlier = outlier(error(x, code, inverse_scale, zero), inverse_beta, 0);
                        zero_sums[lane] += target_zero_point(x, code, outlier, inverse_scale, 0);
                    }
                }
            }
            errors[iteration] += f64::from(error_sums.into_iter().sum::<f32>());
            zero = zero_sums.into_iter().sum::<f32>() / values.len() as f32;
            zeros[iteration + 1] = zero;
        }
        Some(HqqTrace { inverse_scale, zeros })
    }
}

/// Quantizes a row with the zero points of the selected iteration and packs it.
struct HqqRowTask<'a> {
    values: &'a [f32],
    group: usize,
    max_value: i32,
    traces: &'a [Option<HqqTrace>],
    selected: usize,
    bytes: &'a mut [u8],
    bits: u32,
    codes: &'a mut [u32],
}

impl NullaryFnOnce for HqqRowTask<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { values, group, max_value, traces, selected, bytes, bits, codes } = self;
        for ((trace, values), bytes) in traces.iter().zip(values.chunks(group)).zip(bytes.chunks_mut(group)) {
            let Some(HqqTrace { inverse_scale, zeros }) = trace else {
                bytes.fill(0);
                continue;
            };
            let zero = zeros[selected];
            for (byte, &x) in bytes.iter_mut().zip(values) {
                *byte = code(x, *inverse_scale, zero, max_value, 0) as u8;
            }
            bytes[values.len().min(group)..].fill(code(0.0, *inverse_scale, zero, max_value, 0) as u8);
        }
        packing::pack(bytes, bits, codes);
    }
}

/// Returns the index of the selected zero point: after the first iteration that did not lower the tensor's error, or
/// the best.
pub(crate) fn select_iteration(errors: &[[f64; ITERATIONS]], iterate: HqqIterate) -> usize {
    let total: [f64; ITERATIONS] = std::array::from_fn(|i| errors.iter().map(|row| row[i]).sum());
    // The error of an iteration belongs to the zero point before it.
    let stopped = (1..ITERATIONS).find(|&i| total[i] >= total[i - 1]).unwrap_or(ITERATIONS - 1);
    match iterate {
        HqqIterate::Last => stopped + 1,
        HqqIterate::Best => (0..=stopped).min_by(|&a, &b| total[a].total_cmp(&total[b])).unwrap_or(0),
    }
}

/// Rounds a scale or zero point to the dtype that stores it.
pub(crate) fn round_to_element(element: Element, value: f32) -> f32 {
    match element {
        Element::Float(dtype) => dtype.round(value),
        _ => Dtype::F32.round(value),
    }
}

/// Converts a zero point to the units and dtype of the format.
pub(crate) fn round_zero_point(format: &Format, zero: f32, inverse_scale: f32) -> f32 {
    match format.zero {
        ZeroPoint::AfterScale(element) => round_to_element(element, (format.midpoint() - zero) * (1.0 / inverse_scale)),
        ZeroPoint::BeforeScale(element) => round_to_element(element, zero),
        ZeroPoint::None => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Grouping;

    /// Scalar reference: zero points and errors of a group, with the outlier step for every value.
    fn reference(values: &[f32], max_value: i32) -> (HqqTrace, [f64; ITERATIONS]) {
        let (low, high) = min_max(values).unwrap();
        let inverse_scale = inverse_scale(low, high, max_value);
        let mut zeros = [initial_zero_point(low, inverse_scale, max_value, 0); ITERATIONS + 1];
        let errors = std::array::from_fn(|iteration| {
            let (mut zero_sums, mut error_sums) = ([0.0f32; LANES], [0.0f32; LANES]);
            for (i, &x) in values.iter().enumerate() {
                let code = code(x, inverse_scale, zeros[iteration], max_value, 0);
                let error = error(x, code, inverse_scale, zeros[iteration]);
                error_sums[i % LANES] += error.abs();
                let outlier = outlier(error, inverse_betas()[iteration], 0);
                zero_sums[i % LANES] += target_zero_point(x, code, outlier, inverse_scale, 0);
            }
            zeros[iteration + 1] = zero_sums.into_iter().sum::<f32>() / values.len() as f32;
            f64::from(error_sums.into_iter().sum::<f32>())
        });
        (HqqTrace { inverse_scale, zeros }, errors)
    }

    #[test]
    fn skipped_outlier_step_is_bit_exact() {
        let uniform = |i: usize| ((i as u32).wrapping_mul(0x9E37_79B9) >> 8) as f32 / (1 << 23) as f32 - 1.0;
        for (bits, group, cols, size) in [(4, 64, 192, 0.02), (4, 32, 77, 4.0), (2, 64, 128, 1.0), (8, 32, 64, 900.0)] {
            let element = Element::Float(Dtype::F32);
            let format =
                Format::hqq(bits, Grouping::Block(group), Dtype::F32, Dtype::F32, ZeroPoint::AfterScale(element));
            let (max_value, group) = (QuantParams::of_format(&format).max, group as usize);
            let values: Vec<f32> = (0..cols * 8).map(|i| (uniform(i) + uniform(i * 7 + 3).powi(9)) * size).collect();
            let mut group_traces = Vec::new();
            let mut errors = Vec::new();
            for row in values.chunks(cols) {
                let mut row_errors = [0.0; ITERATIONS];
                for values in row.chunks(group) {
                    let mut padded_group = values.to_vec();
                    padded_group.resize(group, 0.0);
                    let (trace, error_sums) = reference(&padded_group, max_value);
                    row_errors.iter_mut().zip(error_sums).for_each(|(sum, error_sums)| *sum += error_sums);
                    group_traces.push((trace, values));
                }
                errors.push(row_errors);
            }
            for iterate in [HqqIterate::Last, HqqIterate::Best] {
                let quantized = quantize(&values, cols, format, iterate);
                let iteration = select_iteration(&errors, iterate);
                let mut codes = Vec::new();
                for (group_index, (HqqTrace { inverse_scale, zeros }, values)) in group_traces.iter().enumerate() {
                    codes.extend(values.iter().map(|&x| code(x, *inverse_scale, zeros[iteration], max_value, 0) as u8));
                    assert_eq!(quantized.scales[group_index].to_bits(), (1.0 / inverse_scale).to_bits());
                    assert_eq!(
                        quantized.zeros[group_index].to_bits(),
                        round_zero_point(&format, zeros[iteration], *inverse_scale).to_bits()
                    );
                }
                assert_eq!(quantized.codes(), codes);
            }
        }
    }
}
