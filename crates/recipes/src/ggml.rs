//! Quantization of a tensor with the arithmetic of ggml.

use crate::format::Format;
use crate::packing;
use crate::quantized_tensor::QuantizedTensor;
use crate::scalar::ggml::{extreme, q4_0, q8_0, reciprocal, scale};
use crate::scalar::rounding::to_f16;
use rayon::prelude::*;

/// Divisor of the value with the largest magnitude, which yields the scale.
pub(crate) fn divisor(bits: u32) -> f32 {
    if bits == 8 { 127.0 } else { -8.0 }
}

pub(crate) fn quantize(values: &[f32], cols: usize, format: Format) -> QuantizedTensor {
    let (rows, group, bits) = (values.len() / cols, format.group_size(cols), format.bits());
    let (per_row, words) = (cols.div_ceil(group), format.words_per_row(cols));
    let (mut codes, mut scales) = (vec![0; rows * words], vec![0.0; rows * per_row]);
    (codes.par_chunks_mut(words), scales.par_chunks_mut(per_row), values.par_chunks(cols))
        .into_par_iter()
        .for_each_init(
            || vec![0; per_row * group],
            |bytes, (codes, scales, values)| {
                bytes.fill(0);
                for ((values, bytes), scale) in values.chunks(group).zip(bytes.chunks_mut(group)).zip(scales) {
                    *scale = quantize_block(values, bits, bytes);
                }
                packing::pack(bytes, bits, codes);
            },
        );
    QuantizedTensor { format, rows, cols, codes, scales, zeros: Vec::new(), outer_scales: Vec::new() }
}

/// Writes the values of a block, and returns the scale in f16; NaN if a value, or the scale in f16, is not finite.
fn quantize_block(values: &[f32], bits: u32, bytes: &mut [u8]) -> f32 {
    let scale = scale(values.iter().fold(0.0, |first, &second| extreme(first, second)), divisor(bits));
    let stored = to_f16(scale);
    if !stored.is_finite() || values.iter().any(|x| x.is_nan()) {
        return f32::NAN;
    }
    let reciprocal = reciprocal(scale);
    for (byte, &x) in bytes.iter_mut().zip(values) {
        *byte = match bits {
            8 => q8_0(x, reciprocal) as u8,
            _ => q4_0(x, reciprocal, 0) as u8 & 0xF,
        };
    }
    stored
}
