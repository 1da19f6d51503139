//! A quantized tensor as it is kept: packed words, on the host or on a device.

use crate::element::Codes;
use crate::format::{Format, Grouping, Method, Zero, stored_words};
use crate::quantized::Quantized;
use crate::scalar::qqq::byte;
use crate::{Element, Weight, packing};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// The words of a quantized tensor; `W` is where they are.
#[derive(Debug, Clone)]
pub struct Stored<W> {
    /// How the tensor is stored.
    pub format: Format,
    /// Number of rows.
    pub rows: usize,
    /// Numbers in a row.
    pub cols: usize,
    /// The codes of each row in whole words.
    pub codes: W,
    /// The scales, packed without gaps.
    pub scales: W,
    /// The zeros, packed without gaps.
    pub zeros: Option<W>,
    /// The scales of the second level in f32.
    pub outer: Option<W>,
    /// Which two of every four numbers are stored, two bits each, where not all are.
    pub kept: Option<W>,
}

/// What is read out of a stored tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reading {
    /// What the codes stand for, without scales.
    Codes,
    /// What the codes and scales stand for, the second level of scales left out.
    Numbers,
    /// The scales, one row of them for each row.
    Scales,
    /// The scales of the second level.
    Outer,
}

impl<W> Stored<W> {
    /// The same with its words somewhere else.
    pub fn map<V>(self, mut move_words: impl FnMut(W) -> V) -> Stored<V> {
        let Self { format, rows, cols, codes, scales, zeros, outer, kept } = self;
        let (codes, scales) = (move_words(codes), move_words(scales));
        let (zeros, outer, kept) = (zeros.map(&mut move_words), outer.map(&mut move_words), kept.map(move_words));
        Stored { format, rows, cols, codes, scales, zeros, outer, kept }
    }

    /// The same, borrowed.
    pub fn as_parts(&self) -> Stored<&W> {
        let Self { format, rows, cols, codes, scales, zeros, outer, kept } = self;
        let (format, rows, cols) = (*format, *rows, *cols);
        let (zeros, outer, kept) = (zeros.as_ref(), outer.as_ref(), kept.as_ref());
        Stored { format, rows, cols, codes, scales, zeros, outer, kept }
    }

    /// Its words in a fixed order, those it has.
    pub fn into_parts(self) -> Vec<W> {
        [Some(self.codes), Some(self.scales), self.zeros, self.outer, self.kept].into_iter().flatten().collect()
    }

    /// Scales of a row.
    pub fn scales_per_row(&self) -> usize {
        self.format.scales(1, self.cols)
    }

    /// The shape of what is read from some of its rows.
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
    /// How many words each part of a tensor of this size takes.
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
    /// Bytes of a stored tensor: codes, scales of both levels, zeros, each in whole words.
    pub fn bytes(&self, rows: usize, cols: usize) -> u64 {
        4 * Stored::sizes(*self, rows, cols).into_parts().into_iter().sum::<usize>() as u64
    }
}

impl Quantized {
    /// The same with scales and zeros that are to be stored in f32, as devices give them.
    pub fn unpacked(self) -> Self {
        Self { format: self.format.unpacked(), ..self }
    }

    /// All numbers that the codes and the scales of both levels stand for, row by row.
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

    /// The words to be kept, scales and zeros in the types that the format stores them in.
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

/// Numbers as the words of an element type.
fn packed(numbers: &[f32], element: Element) -> Vec<u32> {
    in_words(numbers, element, stored_words(numbers.len(), element))
}

/// Numbers at the beginning of so many words.
fn in_words(numbers: &[f32], element: Element, count: usize) -> Vec<u32> {
    let mut words = vec![0; count];
    for (i, &number) in numbers.iter().enumerate() {
        packing::put(&mut words, i, element.bits(), element.encode(number));
    }
    words
}

impl Stored<Vec<u32>> {
    /// A weight as it is.
    pub fn plain(weight: &Weight) -> Self {
        let format = Format::plain(weight.dtype());
        let mut codes = vec![0; weight.n() * format.words_per_row(weight.k())];
        let rows = codes.par_chunks_mut(format.words_per_row(weight.k())).zip(weight.values().par_chunks(weight.k()));
        rows.for_each(|(words, values)| words.copy_from_slice(&in_words(values, format.element, words.len())));
        let (rows, cols, scales) = (weight.n(), weight.k(), vec![0]);
        Self { format, rows, cols, codes, scales, zeros: None, outer: None, kept: None }
    }

    /// Keeps only two of every four numbers: those that are not zero in the pruned weight.
    pub fn two_of_four(self, pruned: &Weight) -> Self {
        let (dense, format) = (&self.format, Format { two_of_four: true, ..self.format });
        let (words, bits) = (format.words_per_row(self.cols), format.bits());
        let mut codes = vec![0; self.rows * words];
        let mut kept = vec![0; self.rows * format.kept_words_per_row(self.cols)];
        let rows = codes.par_chunks_mut(words).zip(kept.par_chunks_mut(format.kept_words_per_row(self.cols)));
        let dense = self.codes.par_chunks(dense.words_per_row(self.cols)).zip(pruned.values().par_chunks(self.cols));
        rows.zip(dense).for_each(|((codes, kept), (dense, values))| {
            for (four, values) in values.chunks(4).enumerate() {
                let [first, second] = kept_of_four(values);
                packing::put(kept, four, 4, (first | second << 2) as u32);
                for (at, position) in [first, second].into_iter().enumerate() {
                    let code = packing::unpack(dense, four * 4 + position, bits);
                    packing::put(codes, four * 2 + at, bits, code);
                }
            }
        });
        Self { format, codes, kept: Some(kept), ..self }
    }
}

/// The positions of the numbers that are not zero, filled up with others, in ascending order.
fn kept_of_four(values: &[f32]) -> [usize; 2] {
    let mut order: [usize; 4] = std::array::from_fn(|i| i);
    order.sort_by_key(|&i| values[i] == 0.0);
    [order[0].min(order[1]), order[0].max(order[1])]
}

impl Stored<&[u32]> {
    /// Reads some rows.
    pub fn read(&self, rows: Range<usize>, reading: Reading) -> Vec<f32> {
        let [count, width] = self.shape(&rows, reading);
        let mut numbers = vec![0.0; count * width];
        let first = if count == rows.len() { rows.start } else { 0 };
        let element = self.format.element;
        // Looking up what small codes stand for takes less than finding it out.
        let small: Vec<f32> = match element.bits() {
            bits @ ..=8 => (0..1 << bits).map(|code| element.decode(code)).collect(),
            _ => Vec::new(),
        };
        let numbers_of = |(row, numbers): (usize, &mut [f32])| match &small[..] {
            [] => self.read_row(first + row, reading, numbers, |code| element.decode(code)),
            small => self.read_row(first + row, reading, numbers, |code| small[code as usize]),
        };
        numbers.par_chunks_mut(width.max(1)).enumerate().for_each(numbers_of);
        numbers
    }

    fn read_row(&self, row: usize, reading: Reading, numbers: &mut [f32], decode: impl Fn(u32) -> f32) {
        let format = &self.format;
        let words = format.words_per_row(self.cols);
        let codes = || &self.codes[row * words..][..words];
        let kept_words = format.kept_words_per_row(self.cols);
        let kept = self.kept.map(|kept| &kept[row * kept_words..][..kept_words]);
        let number_at = |codes: &[u32], col: usize| match kept {
            None => decode(packing::unpack(codes, col, format.bits())),
            Some(kept) => match place_of_kept(packing::unpack(kept, col / 4, 4), col) {
                Some(place) => decode(packing::unpack(codes, place, format.bits())),
                None => 0.0,
            },
        };
        match reading {
            Reading::Numbers if format.method != Method::Plain => {
                let (codes, group) = (codes(), format.group(self.cols));
                for (at, numbers) in numbers.chunks_mut(group).enumerate() {
                    let scale_at = self.scale_index(row, at);
                    let (scale, zero) = (self.scale(scale_at), self.zero(scale_at));
                    for (i, number) in numbers.iter_mut().enumerate() {
                        let code = number_at(codes, at * group + i);
                        *number = match format.zero {
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
                numbers.iter_mut().enumerate().for_each(|(col, number)| *number = number_at(codes, col));
            }
            Reading::Scales => {
                numbers.iter_mut().enumerate().for_each(|(at, n)| *n = self.scale(self.scale_index(row, at)));
            }
            Reading::Outer => {
                let outer = self.outer.map_or(1.0, |outer| f32::from_bits(outer[row.min(outer.len() - 1)]));
                numbers.fill(outer);
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

/// Where among the stored numbers of a row one is, if it is stored.
fn place_of_kept(positions: u32, col: usize) -> Option<usize> {
    let at = [positions & 3, positions >> 2].into_iter().position(|position| position as usize == col % 4)?;
    Some(col / 4 * 2 + at)
}
