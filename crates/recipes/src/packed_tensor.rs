//! Packing of quantized tensors into words, and reading of packed tensors, on the host.

use crate::element::ElementCodec;
use crate::format::{Grouping, QuantMethod, ZeroPoint};
use crate::quantized_tensor::QuantizedTensor;
use crate::scalar::qqq::to_int8;
use crate::{Element, Format, PackedTensor, Weight, packing};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Part of a packed tensor to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TensorPart {
    /// Quantized values without scales.
    QuantizedValues,
    /// Values with group scales and zero points applied, without second-level scales.
    Values,
    /// Scales of each row.
    Scales,
    /// Second-level scales.
    OuterScales,
}

/// Shape of a part read for some rows.
pub(crate) fn part_shape<W>(packed: &PackedTensor<W>, rows: &Range<usize>, part: TensorPart) -> [usize; 2] {
    match part {
        TensorPart::QuantizedValues | TensorPart::Values => [rows.len(), packed.cols],
        TensorPart::Scales if packed.format.grouping == Grouping::Tensor => [1, 1],
        TensorPart::Scales => [rows.len(), packed.scales_per_row()],
        TensorPart::OuterScales => [packed.format.outer_scale_count(packed.rows).min(rows.len()), 1],
    }
}

impl QuantizedTensor {
    /// Declares scales and zero points to be stored in f32, as devices return them.
    pub fn with_f32_scales(self) -> Self {
        Self { format: self.format.with_f32_scales(), ..self }
    }

    /// Values of all elements, row by row, with the scales of both levels applied.
    pub fn dequantize(&self) -> Vec<f32> {
        let words = self.packed_parts();
        let mut values = read_rows(&words.as_refs().map(|words| &**words), 0..self.rows, TensorPart::Values);
        if let Some(&first) = self.outer_scales.first() {
            let outer = |row: usize| self.outer_scales.get(row).copied().unwrap_or(first);
            let rows = values.par_chunks_mut(self.cols).enumerate();
            rows.for_each(|(row, values)| values.iter_mut().for_each(|value| *value *= outer(row)));
        }
        values
    }

    /// Packs scales and zero points in the element types of the format.
    pub fn to_packed(&self) -> PackedTensor<Vec<u32>> {
        self.packed_parts().map(Cow::into_owned)
    }

    fn packed_parts(&self) -> PackedTensor<Cow<'_, [u32]>> {
        let Self { format, rows, cols, codes, .. } = self;
        let outer = || self.outer_scales.iter().map(|scale| scale.to_bits()).collect();
        PackedTensor {
            format: *format,
            rows: *rows,
            cols: *cols,
            codes: Cow::Borrowed(codes),
            scales: Some(Cow::Owned(pack_elements(&self.scales, format.scale))),
            zeros: format.zero.element().map(|element| Cow::Owned(pack_elements(&self.zeros, element))),
            outer_scales: (!self.outer_scales.is_empty()).then(outer).map(Cow::Owned),
            positions: None,
        }
    }
}

/// Packs values as an element type.
fn pack_elements(values: &[f32], element: Element) -> Vec<u32> {
    pack_into_words(values, element, element.words_for(values.len()))
}

/// Packs values into the first bits of `count` words.
fn pack_into_words(values: &[f32], element: Element, count: usize) -> Vec<u32> {
    let mut words = vec![0; count];
    for (i, &value) in values.iter().enumerate() {
        packing::insert(&mut words, i, element.bits(), element.encode(value));
    }
    words
}

/// Packs an unquantized weight.
pub(crate) fn pack_unquantized(weight: &Weight) -> PackedTensor<Vec<u32>> {
    let format = Format::unquantized(weight.dtype());
    let mut codes = vec![0; weight.n() * format.words_per_row(weight.k())];
    let rows = codes.par_chunks_mut(format.words_per_row(weight.k())).zip(weight.values().par_chunks(weight.k()));
    rows.for_each(|(words, values)| words.copy_from_slice(&pack_into_words(values, format.element, words.len())));
    let (rows, cols) = (weight.n(), weight.k());
    PackedTensor { format, rows, cols, codes, scales: None, zeros: None, outer_scales: None, positions: None }
}

/// Compresses to 2:4: stores two of every four values, those that are nonzero in the pruned weight.
pub(crate) fn compress_2to4(packed: PackedTensor<Vec<u32>>, pruned: &Weight) -> PackedTensor<Vec<u32>> {
    let (dense, format) = (&packed.format, Format { sparse_2to4: true, ..packed.format });
    let (words, bits) = (format.words_per_row(packed.cols), format.bits());
    let mut codes = vec![0; packed.rows * words];
    let mut positions = vec![0; packed.rows * format.position_words_per_row(packed.cols)];
    let rows = codes.par_chunks_mut(words).zip(positions.par_chunks_mut(format.position_words_per_row(packed.cols)));
    let dense = packed.codes.par_chunks(dense.words_per_row(packed.cols)).zip(pruned.values().par_chunks(packed.cols));
    rows.zip(dense).for_each(|((codes, positions), (dense, values))| {
        for (group, values) in values.chunks(4).enumerate() {
            let [first, second] = nonzero_positions(values);
            packing::insert(positions, group, 4, (first | second << 2) as u32);
            for (at, position) in [first, second].into_iter().enumerate() {
                let code = packing::unpack(dense, group * 4 + position, bits);
                packing::insert(codes, group * 2 + at, bits, code);
            }
        }
    });
    PackedTensor { format, codes, positions: Some(positions), ..packed }
}

/// Ascending positions of the nonzero values of four, padded to two positions with zeros.
fn nonzero_positions(values: &[f32]) -> [usize; 2] {
    let mut order: [usize; 4] = std::array::from_fn(|i| i);
    order.sort_by_key(|&i| values[i] == 0.0);
    [order[0].min(order[1]), order[0].max(order[1])]
}

/// Reads a part of a packed tensor for some rows.
pub fn read_rows(packed: &PackedTensor<&[u32]>, rows: Range<usize>, part: TensorPart) -> Vec<f32> {
    let [count, width] = part_shape(packed, &rows, part);
    let mut values = vec![0.0; count * width];
    let first = if count == rows.len() { rows.start } else { 0 };
    let element = packed.format.element;
    // A lookup table is faster than decoding small element types.
    let table: Vec<f32> = match element.bits() {
        bits @ ..=8 => (0..1 << bits).map(|code| element.decode(code)).collect(),
        _ => Vec::new(),
    };
    let fill_row = |(row, values): (usize, &mut [f32])| match &table[..] {
        [] => read_row(packed, first + row, part, values, |code| element.decode(code)),
        table => read_row(packed, first + row, part, values, |code| table[code as usize]),
    };
    values.par_chunks_mut(width.max(1)).enumerate().for_each(fill_row);
    values
}

fn read_row(
    packed: &PackedTensor<&[u32]>,
    row: usize,
    part: TensorPart,
    values: &mut [f32],
    decode: impl Fn(u32) -> f32,
) {
    let format = &packed.format;
    let words = format.words_per_row(packed.cols);
    let codes = || &packed.codes[row * words..][..words];
    let position_words = format.position_words_per_row(packed.cols);
    let positions = packed.positions.map(|positions| &positions[row * position_words..][..position_words]);
    let decode_at = |codes: &[u32], col: usize| match positions {
        None => decode(packing::unpack(codes, col, format.bits())),
        Some(positions) => match compressed_index(packing::unpack(positions, col / 4, 4), col) {
            Some(index) => decode(packing::unpack(codes, index, format.bits())),
            None => 0.0,
        },
    };
    match part {
        TensorPart::Values if format.method != QuantMethod::Unquantized => {
            let (codes, group) = (codes(), format.group_size(packed.cols));
            for (at, values) in values.chunks_mut(group).enumerate() {
                let scale_at = scale_index(packed, row, at);
                let (scale, zero) = (scale(packed, scale_at), zero(packed, scale_at));
                for (i, value) in values.iter_mut().enumerate() {
                    let code = decode_at(codes, at * group + i);
                    *value = match format.zero {
                        ZeroPoint::None if format.rounds_to_int8() => to_int8(code * scale) as f32,
                        ZeroPoint::None => code * scale,
                        ZeroPoint::BeforeScale(_) => (code - zero) * scale,
                        ZeroPoint::AfterScale(_) => (code - format.midpoint()) * scale + zero,
                    };
                }
            }
        }
        TensorPart::QuantizedValues | TensorPart::Values => {
            let codes = codes();
            values.iter_mut().enumerate().for_each(|(col, value)| *value = decode_at(codes, col));
        }
        TensorPart::Scales => {
            values.iter_mut().enumerate().for_each(|(at, n)| *n = scale(packed, scale_index(packed, row, at)));
        }
        TensorPart::OuterScales => {
            let outer = packed.outer_scales.map_or(1.0, |outer| f32::from_bits(outer[row.min(outer.len() - 1)]));
            values.fill(outer);
        }
    }
}

fn scale_index<W>(packed: &PackedTensor<W>, row: usize, group: usize) -> usize {
    if packed.format.grouping == Grouping::Tensor { 0 } else { row * packed.scales_per_row() + group }
}

fn scale(packed: &PackedTensor<&[u32]>, at: usize) -> f32 {
    let element = packed.format.scale;
    packed.scales.map_or(1.0, |scales| element.decode(packing::unpack(scales, at, element.bits())))
}

fn zero(packed: &PackedTensor<&[u32]>, at: usize) -> f32 {
    let zero = |element: Element| element.decode(packing::unpack(packed.zeros.unwrap_or(&[]), at, element.bits()));
    packed.format.zero.element().map_or(0.0, zero)
}

/// Index of a column among the stored values of a row; `None` if it is not stored.
fn compressed_index(positions: u32, col: usize) -> Option<usize> {
    let at = [positions & 3, positions >> 2].into_iter().position(|position| position as usize == col % 4)?;
    Some(col / 4 * 2 + at)
}
