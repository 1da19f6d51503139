//! QQQ quantization of a tensor: 4-bit values whose group scales map them to int8 values with a row scale.

use crate::dispatch::with_steps;
use crate::format::Format;
use crate::min_max::min_max;
use crate::packing;
use crate::quantized_tensor::QuantizedTensor;
use crate::scalar::qqq::{code, group_scale, relative_scale};
use crate::scalar::rounding::StepRounding;
use rayon::prelude::*;

pub(crate) fn quantize(values: &[f32], cols: usize, format: Format) -> QuantizedTensor {
    with_steps!(format.compute_dtype, S => { quantize_with::<S>(values, cols, format) })
}

fn quantize_with<S: StepRounding>(values: &[f32], cols: usize, format: Format) -> QuantizedTensor {
    let (rows, group) = (values.len() / cols, format.group_size(cols));
    let per_row = cols.div_ceil(group);
    let words = format.words_per_row(cols);
    let (mut codes, mut scales, mut outer) = (vec![0; rows * words], vec![0.0; rows * per_row], vec![0.0; rows]);
    (codes.par_chunks_mut(words), scales.par_chunks_mut(per_row), &mut outer, values.par_chunks(cols))
        .into_par_iter()
        .for_each_init(
            || vec![0; words * 8],
            |bytes, (codes, scales, outer, values)| {
                *outer = quantize_row::<S>(values, group, scales, bytes);
                packing::pack(bytes, 4, codes);
            },
        );
    QuantizedTensor { format, rows, cols, codes, scales, zeros: Vec::new(), outer_scales: outer }
}

/// Writes the values and group scales of a row, and returns the row scale.
fn quantize_row<S: StepRounding>(values: &[f32], group: usize, scales: &mut [f32], bytes: &mut [u8]) -> f32 {
    bytes.fill(0);
    let Some((low, high)) = min_max(values) else {
        scales.fill(f32::NAN);
        return f32::NAN;
    };
    if values.len() == group {
        // A single group has a single scale: the 4-bit values are the upper halves of int8 values.
        let scale = S::round(high.max(-low) / 7.0);
        for (byte, &x) in bytes.iter_mut().zip(values) {
            *byte = code::<S>(x, scale, -7) as u8 & 0xF;
        }
        scales.fill(16.0);
        return S::round(scale / 16.0);
    }
    let mut row_amax = 0.0f32;
    for ((values, bytes), scale) in values.chunks(group).zip(bytes.chunks_mut(group)).zip(&mut *scales) {
        *scale = group_scale::<S>(values.iter().fold(0.0f32, |amax, x| amax.max(x.abs())));
        for (byte, &x) in bytes.iter_mut().zip(values) {
            let code = code::<S>(x, *scale, -8);
            row_amax = row_amax.max(S::round(code as f32 * *scale).abs());
            *byte = code as u8 & 0xF;
        }
    }
    let outer = S::round(row_amax / 127.0);
    scales.iter_mut().for_each(|scale| *scale = relative_scale::<S>(*scale, outer));
    outer
}
