//! Packed tensor: words of quantized values, scales and zero points on the host or on a device.

use crate::element::ElementCodec;
use crate::format::{Grouping, QuantMethod, TensorFormat, ZeroPointFormat, packed_words};
use crate::quantized_tensor::QuantizedTensor;
use crate::scalar::qqq::to_int8;
use crate::{Element, Weight, packing};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Words of a quantized tensor; `W` is the storage: a vector, a slice or a device tensor.
#[derive(Debug, Clone)]
pub struct PackedTensor<W> {
    /// Storage format.
    pub format: TensorFormat,
    /// Number of rows.
    pub rows: usize,
    /// Values per row.
    pub cols: usize,
    /// Quantized values, each row in whole words.
    pub codes: W,
    /// Scales, packed without gaps.
    pub scales: W,
    /// Zero points, packed without gaps.
    pub zeros: Option<W>,
    /// Second-level scales in f32.
    pub outer_scales: Option<W>,
    /// 2:4 metadata: positions of the two stored values of every four, two bits each.
    pub positions: Option<W>,
}

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

impl<W> PackedTensor<W> {
    /// Moves the words to another storage.
    pub fn map<V>(self, mut move_words: impl FnMut(W) -> V) -> PackedTensor<V> {
        let Self { format, rows, cols, codes, scales, zeros, outer_scales, positions } = self;
        let (codes, scales) = (move_words(codes), move_words(scales));
        let (zeros, outer_scales) = (zeros.map(&mut move_words), outer_scales.map(&mut move_words));
        let positions = positions.map(move_words);
        PackedTensor { format, rows, cols, codes, scales, zeros, outer_scales, positions }
    }

    /// Borrows the words.
    pub fn as_refs(&self) -> PackedTensor<&W> {
        let Self { format, rows, cols, codes, scales, zeros, outer_scales, positions } = self;
        let (format, rows, cols) = (*format, *rows, *cols);
        let (zeros, outer_scales, positions) = (zeros.as_ref(), outer_scales.as_ref(), positions.as_ref());
        PackedTensor { format, rows, cols, codes, scales, zeros, outer_scales, positions }
    }

    /// Storage of all parts that exist, in a fixed order.
    pub fn into_parts(self) -> Vec<W> {
        [Some(self.codes), Some(self.scales), self.zeros, self.outer_scales, self.positions]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Scales per row.
    pub fn scales_per_row(&self) -> usize {
        self.format.scale_count(1, self.cols)
    }

    /// Shape of a part read for some rows.
    pub fn shape(&self, rows: &Range<usize>, reading: TensorPart) -> [usize; 2] {
        match reading {
            TensorPart::QuantizedValues | TensorPart::Values => [rows.len(), self.cols],
            TensorPart::Scales if self.format.grouping == Grouping::Tensor => [1, 1],
            TensorPart::Scales => [rows.len(), self.scales_per_row()],
            TensorPart::OuterScales => [self.format.outer_scale_count(self.rows).min(rows.len()), 1],
        }
    }
}

impl PackedTensor<usize> {
    /// Words of each part of a tensor.
    pub fn word_counts(format: TensorFormat, rows: usize, cols: usize) -> Self {
        let scales = format.scale_count(rows, cols);
        let outer = format.outer_scale_count(rows);
        Self {
            format,
            rows,
            cols,
            codes: rows * format.words_per_row(cols),
            scales: packed_words(scales, format.scale),
            zeros: format.zero.element().map(|element| packed_words(scales, element)),
            outer_scales: (outer > 0).then_some(outer),
            positions: format.sparse_2to4.then_some(rows * format.position_words_per_row(cols)),
        }
    }
}

impl TensorFormat {
    /// Bytes of a packed tensor: quantized values, zero points and scales of both levels, each in whole words.
    pub fn bytes(&self, rows: usize, cols: usize) -> u64 {
        4 * PackedTensor::word_counts(*self, rows, cols).into_parts().into_iter().sum::<usize>() as u64
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
        let mut values = words.as_refs().map(|words| &**words).read_rows(0..self.rows, TensorPart::Values);
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
            scales: Cow::Owned(pack_elements(&self.scales, format.scale)),
            zeros: format.zero.element().map(|element| Cow::Owned(pack_elements(&self.zeros, element))),
            outer_scales: (!self.outer_scales.is_empty()).then(outer).map(Cow::Owned),
            positions: None,
        }
    }
}

/// Packs values as an element type.
fn pack_elements(values: &[f32], element: Element) -> Vec<u32> {
    pack_into_words(values, element, packed_words(values.len(), element))
}

/// Packs values into the first bits of `count` words.
fn pack_into_words(values: &[f32], element: Element, count: usize) -> Vec<u32> {
    let mut words = vec![0; count];
    for (i, &value) in values.iter().enumerate() {
        packing::insert(&mut words, i, element.bits(), element.encode(value));
    }
    words
}

impl PackedTensor<Vec<u32>> {
    /// Unquantized weight.
    pub fn unquantized(weight: &Weight) -> Self {
        let format = TensorFormat::unquantized(weight.dtype());
        let mut codes = vec![0; weight.n() * format.words_per_row(weight.k())];
        let rows = codes.par_chunks_mut(format.words_per_row(weight.k())).zip(weight.values().par_chunks(weight.k()));
        rows.for_each(|(words, values)| words.copy_from_slice(&pack_into_words(values, format.element, words.len())));
        let (rows, cols, scales) = (weight.n(), weight.k(), vec![0]);
        Self { format, rows, cols, codes, scales, zeros: None, outer_scales: None, positions: None }
    }

    /// Compresses to 2:4: stores two of every four values, those that are nonzero in the pruned weight.
    pub fn compress_2to4(self, pruned: &Weight) -> Self {
        let (dense, format) = (&self.format, TensorFormat { sparse_2to4: true, ..self.format });
        let (words, bits) = (format.words_per_row(self.cols), format.bits());
        let mut codes = vec![0; self.rows * words];
        let mut positions = vec![0; self.rows * format.position_words_per_row(self.cols)];
        let rows = codes.par_chunks_mut(words).zip(positions.par_chunks_mut(format.position_words_per_row(self.cols)));
        let dense = self.codes.par_chunks(dense.words_per_row(self.cols)).zip(pruned.values().par_chunks(self.cols));
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
        Self { format, codes, positions: Some(positions), ..self }
    }
}

/// Ascending positions of the nonzero values of four, padded to two positions with zeros.
fn nonzero_positions(values: &[f32]) -> [usize; 2] {
    let mut order: [usize; 4] = std::array::from_fn(|i| i);
    order.sort_by_key(|&i| values[i] == 0.0);
    [order[0].min(order[1]), order[0].max(order[1])]
}

impl PackedTensor<&[u32]> {
    /// Reads a part for some rows.
    pub fn read_rows(&self, rows: Range<usize>, reading: TensorPart) -> Vec<f32> {
        let [count, width] = self.shape(&rows, reading);
        let mut values = vec![0.0; count * width];
        let first = if count == rows.len() { rows.start } else { 0 };
        let element = self.format.element;
        // A lookup table is faster than decoding small element types.
        let table: Vec<f32> = match element.bits() {
            bits @ ..=8 => (0..1 << bits).map(|code| element.decode(code)).collect(),
            _ => Vec::new(),
        };
        let fill_row = |(row, values): (usize, &mut [f32])| match &table[..] {
            [] => self.read_row(first + row, reading, values, |code| element.decode(code)),
            table => self.read_row(first + row, reading, values, |code| table[code as usize]),
        };
        values.par_chunks_mut(width.max(1)).enumerate().for_each(fill_row);
        values
    }

    fn read_row(&self, row: usize, reading: TensorPart, values: &mut [f32], decode: impl Fn(u32) -> f32) {
        let format = &self.format;
        let words = format.words_per_row(self.cols);
        let codes = || &self.codes[row * words..][..words];
        let position_words = format.position_words_per_row(self.cols);
        let positions = self.positions.map(|positions| &positions[row * position_words..][..position_words]);
        let decode_at = |codes: &[u32], col: usize| match positions {
            None => decode(packing::unpack(codes, col, format.bits())),
            Some(positions) => match compressed_index(packing::unpack(positions, col / 4, 4), col) {
                Some(index) => decode(packing::unpack(codes, index, format.bits())),
                None => 0.0,
            },
        };
        match reading {
            TensorPart::Values if format.method != QuantMethod::Unquantized => {
                let (codes, group) = (codes(), format.group_size(self.cols));
                for (at, values) in values.chunks_mut(group).enumerate() {
                    let scale_at = self.scale_index(row, at);
                    let (scale, zero) = (self.scale(scale_at), self.zero(scale_at));
                    for (i, value) in values.iter_mut().enumerate() {
                        let code = decode_at(codes, at * group + i);
                        *value = match format.zero {
                            ZeroPointFormat::None if format.rounds_to_int8() => to_int8(code * scale) as f32,
                            ZeroPointFormat::None => code * scale,
                            ZeroPointFormat::BeforeScale(_) => (code - zero) * scale,
                            ZeroPointFormat::AfterScale(_) => (code - format.midpoint()) * scale + zero,
                        };
                    }
                }
            }
            TensorPart::QuantizedValues | TensorPart::Values => {
                let codes = codes();
                values.iter_mut().enumerate().for_each(|(col, value)| *value = decode_at(codes, col));
            }
            TensorPart::Scales => {
                values.iter_mut().enumerate().for_each(|(at, n)| *n = self.scale(self.scale_index(row, at)));
            }
            TensorPart::OuterScales => {
                let outer = self.outer_scales.map_or(1.0, |outer| f32::from_bits(outer[row.min(outer.len() - 1)]));
                values.fill(outer);
            }
        }
    }

    fn scale_index(&self, row: usize, group: usize) -> usize {
        if self.format.grouping == Grouping::Tensor { 0 } else { row * self.scales_per_row() + group }
    }

    fn scale(&self, at: usize) -> f32 {
        let element = self.format.scale;
        element.decode(packing::unpack(self.scales, at, element.bits()))
    }

    fn zero(&self, at: usize) -> f32 {
        let zero = |element: Element| element.decode(packing::unpack(self.zeros.unwrap_or(&[]), at, element.bits()));
        self.format.zero.element().map_or(0.0, zero)
    }
}

/// Index of a column among the stored values of a row; `None` if it is not stored.
fn compressed_index(positions: u32, col: usize) -> Option<usize> {
    let at = [positions & 3, positions >> 2].into_iter().position(|position| position as usize == col % 4)?;
    Some(col / 4 * 2 + at)
}
