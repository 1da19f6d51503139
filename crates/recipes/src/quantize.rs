//! Quantization of tensors on the host.

use crate::dispatch::with_rule;
use crate::format::{Format, Grouping, QuantMethod, ZeroPoint};
use crate::min_max::min_max;
use crate::quantized_tensor::QuantizedTensor;
use crate::scalar::rules::{QuantParams, QuantRule, nvfp4_tensor_scale};
use crate::{ggml, hqq, packing, qqq};
use pulp::NullaryFnOnce;
use rayon::prelude::*;
use std::marker::PhantomData;

/// Quantizes row-major values.
///
/// # Panics
/// If the values do not fill whole rows of `cols`.
pub fn quantize(values: &[f32], cols: usize, format: Format) -> QuantizedTensor {
    assert!(cols > 0 && values.len().is_multiple_of(cols), "{} values in rows of {cols}", values.len());
    match format.method {
        QuantMethod::Hqq(iterate) => hqq::quantize(values, cols, format, iterate),
        QuantMethod::Qqq => qqq::quantize(values, cols, format),
        QuantMethod::Ggml => ggml::quantize(values, cols, format),
        QuantMethod::Unquantized => unreachable!("unquantized formats are not quantized"),
        _ => {
            let amax = match (format.grouping, format.method) {
                (Grouping::Tensor, _) | (_, QuantMethod::Nvfp4) => tensor_amax(values, cols),
                _ => 0.0,
            };
            with_rule!(format, R => quantize_with::<R>(values, cols, format, amax))
        }
    }
}

/// Returns amax of a tensor; NaN if a value is not finite.
fn tensor_amax(values: &[f32], cols: usize) -> f32 {
    let arch = pulp::Arch::new();
    let of_row = |row: &[f32]| arch.dispatch(MinMaxTask(row)).map_or(f32::NAN, |(low, high)| high.max(-low));
    values
        .par_chunks(cols)
        .map(of_row)
        .reduce(|| 0.0, |a, b| if a.is_nan() || b.is_nan() { f32::NAN } else { a.max(b) })
}

/// Runs [`extremes`] with the widest vector instructions. A struct instead of a closure, because closures are not
/// inlined where the target features are known.
struct MinMaxTask<'a>(&'a [f32]);

impl NullaryFnOnce for MinMaxTask<'_> {
    type Output = Option<(f32, f32)>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        min_max(self.0)
    }
}

/// Task that quantizes a row: its values, scratch memory and outputs.
struct QuantizeRowTask<'a, R> {
    values: &'a [f32],
    format: &'a Format,
    amax: f32,
    scratch: &'a mut RowScratch,
    codes: &'a mut [u32],
    scales: &'a mut [f32],
    zeros: &'a mut [f32],
    rule: PhantomData<R>,
}

/// Temporary buffers of a row until its values are packed.
struct RowScratch {
    /// Row padded to whole groups.
    values: Vec<f32>,
    zeros: Vec<f32>,
    codes: Vec<u8>,
}

fn quantize_with<R: QuantRule>(values: &[f32], cols: usize, format: Format, amax: f32) -> QuantizedTensor {
    let (rows, words) = (values.len() / cols, format.words_per_row(cols));
    let per_row = cols.div_ceil(format.group_size(cols));
    let mut codes = vec![0; rows * words];
    let mut scales = vec![0.0; rows * per_row];
    let mut zeros = vec![0.0; if format.zero == ZeroPoint::None { 0 } else { rows * per_row }];
    let mut row_zeros: Vec<&mut [f32]> = zeros.chunks_mut(per_row).collect();
    row_zeros.resize_with(rows, Default::default);
    let padded = cols.next_multiple_of(format.group_size(cols));
    let scratch = || RowScratch {
        values: vec![0.0; padded],
        zeros: vec![0.0; per_row],
        codes: vec![0; padded.next_multiple_of(packing::BLOCK)],
    };
    let arch = pulp::Arch::new();
    (values.par_chunks(cols), codes.par_chunks_mut(words), scales.par_chunks_mut(per_row), row_zeros)
        .into_par_iter()
        .for_each_init(scratch, |scratch, (values, codes, scales, zeros)| {
            let (format, rule) = (&format, PhantomData::<R>);
            arch.dispatch(QuantizeRowTask { values, format, amax, scratch, codes, scales, zeros, rule });
        });
    if format.grouping == Grouping::Tensor {
        scales.truncate(1);
    }
    let outer = if format.method == QuantMethod::Nvfp4 { vec![nvfp4_tensor_scale(amax)] } else { Vec::new() };
    QuantizedTensor { format, rows, cols, codes, scales, zeros, outer_scales: outer }
}

impl<R: QuantRule> NullaryFnOnce for QuantizeRowTask<'_, R> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        // Small groups are vectorized only if their size is known at compile time.
        match self.format.group_size(self.values.len()) {
            16 => self.quantize(16),
            32 => self.quantize(32),
            group => self.quantize(group),
        }
    }
}

impl<R: QuantRule> QuantizeRowTask<'_, R> {
    #[inline(always)]
    fn quantize(self, group: usize) {
        let Self { mut values, format, amax, scratch, codes, scales, zeros, .. } = self;
        let params = QuantParams::of_format(format);
        // The padding zeros are part of the last group.
        if values.len() < scratch.values.len() {
            scratch.values[..values.len()].copy_from_slice(values);
            values = &scratch.values;
        }
        // Each pass is vectorized. Between the first two passes minimum and maximum are stored in place of scale and
        // zero point.
        for ((low, high), values) in scales.iter_mut().zip(&mut scratch.zeros).zip(values.chunks_exact(group)) {
            (*low, *high) = match format.grouping {
                Grouping::Tensor => (-amax, amax),
                _ => min_max(values).unwrap_or((f32::NAN, f32::NAN)),
            };
        }
        for (scale, zero) in scales.iter_mut().zip(&mut scratch.zeros) {
            let (low, high) = (*scale, *zero);
            let computed = R::scale(low, high, amax, params);
            // A range that overflows f32 has no scale.
            let finite = !low.is_nan() & !amax.is_nan() & computed.is_finite();
            *scale = if finite { computed } else { f32::NAN };
            *zero = if finite { R::zero(low, computed, params) } else { 0.0 };
        }
        let parameters = scales.iter().zip(&scratch.zeros);
        let groups = values.chunks_exact(group).zip(scratch.codes.chunks_exact_mut(group));
        for ((&scale, &zero), (values, codes)) in parameters.zip(groups) {
            if scale.is_nan() {
                codes.fill(0);
                continue;
            }
            for (code, &x) in codes.iter_mut().zip(values) {
                *code = R::code(x, scale, zero, amax, params) as u8;
            }
        }
        packing::pack(&scratch.codes, format.bits(), codes);
        zeros.copy_from_slice(&scratch.zeros[..zeros.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::MxScaling;
    use crate::{Dtype, Element};

    /// Scalar reference: quantized values, scales and zero points.
    fn reference<R: QuantRule>(values: &[f32], cols: usize, format: Format) -> (Vec<u8>, Vec<f32>, Vec<f32>) {
        let (group, params) = (format.group_size(cols), QuantParams::of_format(&format));
        let finite = |values: &[f32]| values.iter().all(|x| x.is_finite());
        let extremes = |values: &[f32]| {
            let by_size = |a: &&f32, b: &&f32| a.total_cmp(b);
            (*values.iter().min_by(by_size).unwrap(), *values.iter().max_by(by_size).unwrap())
        };
        let (low, high) = extremes(values);
        let amax = high.max(-low);
        let (mut codes, mut scales, mut zeros) = (Vec::new(), Vec::new(), Vec::new());
        for group_values in values.chunks(cols).flat_map(|row| row.chunks(group)) {
            let mut padded = group_values.to_vec();
            padded.resize(group, 0.0);
            let per_tensor = format.grouping == Grouping::Tensor;
            let (low, high) = if per_tensor { (-amax, amax) } else { extremes(&padded) };
            let dependencies = if per_tensor || format.method == QuantMethod::Nvfp4 { values } else { group_values };
            let scale = R::scale(low, high, amax, params);
            let zero = R::zero(low, scale, params);
            if finite(dependencies) && scale.is_finite() {
                codes.extend(group_values.iter().map(|&x| R::code(x, scale, zero, amax, params) as u8));
                scales.push(scale);
                zeros.push(zero);
            } else {
                codes.extend(group_values.iter().map(|_| 0));
                scales.push(f32::NAN);
                zeros.push(0.0);
            }
        }
        scales.truncate(format.scale_count(values.len() / cols, cols));
        zeros.truncate(if format.zero == ZeroPoint::None { 0 } else { scales.len() });
        (codes, scales, zeros)
    }

    #[test]
    fn simd_matches_scalar_reference() {
        use Dtype::{Bf16, F16, F32};
        use Grouping::{Block, Row, Tensor};
        let formats = [
            Format::symmetric(8, Row, F32, F32),
            Format::symmetric(8, Row, Bf16, Bf16),
            Format::symmetric(8, Tensor, F16, F32),
            Format::symmetric(4, Block(32), Bf16, F32),
            Format::asymmetric(Element::Unsigned(3), Block(64), F32),
            Format::asymmetric(Element::Signed(8), Row, F16),
            Format::tinygemm(Block(128), F32),
            Format::tinygemm(Block(32), Bf16),
            Format::float8(Element::E4m3, Row, Bf16),
            Format::float8(Element::E5m2, Tensor, F32),
            Format::float8(Element::E3m2, Row, F16),
            Format::mx(Element::E4m3, MxScaling::Ceil),
            Format::mx(Element::E2m1, MxScaling::Floor),
            Format::nvfp4(),
        ];
        let uniform = |i: usize| ((i as u32).wrapping_mul(0x9E37_79B9) >> 8) as f32 / (1 << 23) as f32 - 1.0;
        let kinds: [fn(usize, f32) -> f32; 6] = [
            |_, x| x,
            |_, x| x.powi(5) * 1e-37,
            |_, x| x * 3e38,
            |_, x| x.abs() + 3.0,
            |i, x| if i / 40 % 2 == 0 { 0.0 * x } else { x },
            |i, x| if i % 300 == 7 { f32::NEG_INFINITY } else { x },
        ];
        let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        for (rows, cols) in [(3, 512), (5, 33), (2, 299), (4, 1)] {
            for (kind, change) in kinds.iter().enumerate() {
                let values: Vec<f32> = (0..rows * cols).map(|i| change(i, uniform(i))).collect();
                for format in formats {
                    let quantized = quantize(&values, cols, format);
                    let (codes, scales, zeros) = with_rule!(format, R => reference::<R>(&values, cols, format));
                    let what = format!("{rows} x {cols}, kind {kind}, {format:?}");
                    assert_eq!(quantized.codes(), codes, "codes of {what}");
                    assert_eq!(bits(&quantized.scales), bits(&scales), "scales of {what}");
                    assert_eq!(bits(&quantized.zeros), bits(&zeros), "zeros of {what}");
                }
            }
        }
    }
}
