//! Packed tensor: words of quantized values, scales and zero points on the host or on a device.

use crate::element::Codes;
use crate::format::{Format, Grouping, Method, Zero, stored_words};
use crate::quantized::Quantized;
use crate::scalar::qqq::byte;
use crate::{Element, Weight, packing};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Words of a quantized tensor; `W` is the storage: a vector, a slice or a device tensor.
#[derive(Debug, Clone)]
pub struct Stored<W> {
    /// Storage format.
    pub format: Format,
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
    pub outer: Option<W>,
    /// 2:4 metadata: positions of the two stored values of every four, two bits each.
    pub kept: Option<W>,
}

/// Part of a packed tensor to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reading {
    /// Quantized values without scales.
    Codes,
    /// Values with group scales and zero points applied, without second-level scales.
    Numbers,
    /// Scales of each row.
    Scales,
    /// Second-level scales.
    Outer,
}

impl<W> Stored<W> {
    /// Moves the words to another storage.
    pub fn map<V>(self, mut move_words: impl FnMut(W) -> V) -> Stored<V> {
        let Self { format, rows, cols, codes, scales, zeros, outer: outer_scales, kept: positions } = self;
        let (codes, scales) = (move_words(codes), move_words(scales));
        let (zeros, outer_scales) = (zeros.map(&mut move_words), outer_scales.map(&mut move_words));
        let positions = positions.map(move_words);
        Stored { format, rows, cols, codes, scales, zeros, outer: outer_scales, kept: positions }
    }

    /// Borrows the words.
    pub fn as_parts(&self) -> Stored<&W> {
        let Self { format, rows, cols, codes, scales, zeros, outer: outer_scales, kept: positions } = self;
        let (format, rows, cols) = (*format, *rows, *cols);
        let (zeros, outer_scales, positions) = (zeros.as_ref(), outer_scales.as_ref(), positions.as_ref());
        Stored { format, rows, cols, codes, scales, zeros, outer: outer_scales, kept: positions }
    }

    /// Storage of all parts that exist, in a fixed order.
    pub fn into_parts(self) -> Vec<W> {
        [Some(self.codes), Some(self.scales), self.zeros, self.outer, self.kept].into_iter().flatten().collect()
    }

    /// Scales per row.
    pub fn scales_per_row(&self) -> usize {
        self.format.scales(1, self.cols)
    }

    /// Shape of a part read for some rows.
    pub fn shape(&self, rows: &Range<usize>, reading: Reading) -> [usize; 2] {
        match reading {
            Reading::Codes | Reading::Numbers => [rows.len(), self.cols],
            Reading::Scales if self.format.grouping == Grouping::Tensor => [1, 1],
            Reading::Scales => [rows.len(), self.scales_per_row()],
            Reading::Outer => [self.format.outer_scales(self.rows).min(rows.len()), 1],
        }
    }
}

impl Stored<usize> {
    /// Words of each part of a tensor.
    pub fn sizes(format: Format, rows: usize, cols: usize) -> Self {
        let scales = format.scales(rows, cols);
        let outer = format.outer_scales(rows);
        Self {
            format,
            rows,
            cols,
            codes: rows * format.words_per_row(cols),
            scales: stored_words(scales, format.scale),
            zeros: format.zero.element().map(|element| stored_words(scales, element)),
            outer: (outer > 0).then_some(outer),
            kept: format.two_of_four.then_some(rows * format.kept_words_per_row(cols)),
        }
    }
}

impl Format {
    /// Bytes of a packed tensor: quantized values, zero points and scales of both levels, each in whole words.
    pub fn bytes(&self, rows: usize, cols: usize) -> u64 {
        4 * Stored::sizes(*self, rows, cols).into_parts().into_iter().sum::<usize>() as u64
    }
}

impl Quantized {
    /// Declares scales and zero points to be stored in f32, as devices return them.
    pub fn unpacked(self) -> Self {
        Self { format: self.format.unpacked(), ..self }
    }

    /// Values of all elements, row by row, with the scales of both levels applied.
    pub fn dequantize(&self) -> Vec<f32> {
        let words = self.words();
        let mut values = words.as_parts().map(|words| &**words).read(0..self.rows, Reading::Numbers);
        if let Some(&first) = self.outer.first() {
            let outer = |row: usize| self.outer.get(row).copied().unwrap_or(first);
            let rows = values.par_chunks_mut(self.cols).enumerate();
            rows.for_each(|(row, values)| values.iter_mut().for_each(|value| *value *= outer(row)));
        }
        values
    }

    /// Packs scales and zero points in the element types of the format.
    pub fn stored(&self) -> Stored<Vec<u32>> {
        self.words().map(Cow::into_owned)
    }

    fn words(&self) -> Stored<Cow<'_, [u32]>> {
        let Self { format, rows, cols, codes, .. } = self;
        let outer = || self.outer.iter().map(|scale| scale.to_bits()).collect();
        Stored {
            format: *format,
            rows: *rows,
            cols: *cols,
            codes: Cow::Borrowed(codes),
            scales: Cow::Owned(packed(&self.scales, format.scale)),
            zeros: format.zero.element().map(|element| Cow::Owned(packed(&self.zeros, element))),
            outer: (!self.outer.is_empty()).then(outer).map(Cow::Owned),
            kept: None,
        }
    }
}

/// Packs values as an element type.
fn packed(values: &[f32], element: Element) -> Vec<u32> {
    in_words(values, element, stored_words(values.len(), element))
}

/// Packs values into the first bits of `count` words.
fn in_words(values: &[f32], element: Element, count: usize) -> Vec<u32> {
    let mut words = vec![0; count];
    for (i, &value) in values.iter().enumerate() {
        packing::put(&mut words, i, element.bits(), element.encode(value));
    }
    words
}

impl Stored<Vec<u32>> {
    /// Unquantized weight.
    pub fn plain(weight: &Weight) -> Self {
        let format = Format::plain(weight.dtype());
        let mut codes = vec![0; weight.n() * format.words_per_row(weight.k())];
        let rows = codes.par_chunks_mut(format.words_per_row(weight.k())).zip(weight.values().par_chunks(weight.k()));
        rows.for_each(|(words, values)| words.copy_from_slice(&in_words(values, format.element, words.len())));
        let (rows, cols, scales) = (weight.n(), weight.k(), vec![0]);
        Self { format, rows, cols, codes, scales, zeros: None, outer: None, kept: None }
    }

    /// Compresses to 2:4: stores two of every four values, those that are nonzero in the pruned weight.
    pub fn two_of_four(self, pruned: &Weight) -> Self {
        let (dense, format) = (&self.format, Format { two_of_four: true, ..self.format });
        let (words, bits) = (format.words_per_row(self.cols), format.bits());
        let mut codes = vec![0; self.rows * words];
        let mut positions = vec![0; self.rows * format.kept_words_per_row(self.cols)];
        let rows = codes.par_chunks_mut(words).zip(positions.par_chunks_mut(format.kept_words_per_row(self.cols)));
        let dense = self.codes.par_chunks(dense.words_per_row(self.cols)).zip(pruned.values().par_chunks(self.cols));
        rows.zip(dense).for_each(|((codes, positions), (dense, values))| {
            for (group, values) in values.chunks(4).enumerate() {
                let [first, second] = kept_of_four(values);
                packing::put(positions, group, 4, (first | second << 2) as u32);
                for (at, position) in [first, second].into_iter().enumerate() {
                    let code = packing::unpack(dense, group * 4 + position, bits);
                    packing::put(codes, group * 2 + at, bits, code);
                }
            }
        });
        Self { format, codes, kept: Some(positions), ..self }
    }
}

/// Ascending positions of the nonzero values of four, padded to two positions with zeros.
fn kept_of_four(values: &[f32]) -> [usize; 2] {
    let mut order: [usize; 4] = std::array::from_fn(|i| i);
    order.sort_by_key(|&i| values[i] == 0.0);
    [order[0].min(order[1]), order[0].max(order[1])]
}

impl Stored<&[u32]> {
    /// Reads a part for some rows.
    pub fn read(&self, rows: Range<usize>, reading: Reading) -> Vec<f32> {
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

    fn read_row(&self, row: usize, reading: Reading, values: &mut [f32], decode: impl Fn(u32) -> f32) {
        let format = &self.format;
        let words = format.words_per_row(self.cols);
        let codes = || &self.codes[row * words..][..words];
        let position_words = format.kept_words_per_row(self.cols);
        let positions = self.kept.map(|positions| &positions[row * position_words..][..position_words]);
        let decode_at = |codes: &[u32], col: usize| match positions {
            None => decode(packing::unpack(codes, col, format.bits())),
            Some(positions) => match place_of_kept(packing::unpack(positions, col / 4, 4), col) {
                Some(index) => decode(packing::unpack(codes, index, format.bits())),
                None => 0.0,
            },
        };
        match reading {
            Reading::Numbers if format.method != Method::Plain => {
                let (codes, group) = (codes(), format.group(self.cols));
                for (at, values) in values.chunks_mut(group).enumerate() {
                    let scale_at = self.scale_index(row, at);
                    let (scale, zero) = (self.scale(scale_at), self.zero(scale_at));
                    for (i, value) in values.iter_mut().enumerate() {
                        let code = decode_at(codes, at * group + i);
                        *value = match format.zero {
                            Zero::None if format.rounds_to_integers() => byte(code * scale) as f32,
                            Zero::None => code * scale,
                            Zero::InSteps(_) => (code - zero) * scale,
                            Zero::InUnits(_) => (code - format.middle()) * scale + zero,
                        };
                    }
                }
            }
            Reading::Codes | Reading::Numbers => {
                let codes = codes();
                values.iter_mut().enumerate().for_each(|(col, value)| *value = decode_at(codes, col));
            }
            Reading::Scales => {
                values.iter_mut().enumerate().for_each(|(at, n)| *n = self.scale(self.scale_index(row, at)));
            }
            Reading::Outer => {
                let outer = self.outer.map_or(1.0, |outer| f32::from_bits(outer[row.min(outer.len() - 1)]));
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
fn place_of_kept(positions: u32, col: usize) -> Option<usize> {
    let at = [positions & 3, positions >> 2].into_iter().position(|position| position as usize == col % 4)?;
    Some(col / 4 * 2 + at)
}
