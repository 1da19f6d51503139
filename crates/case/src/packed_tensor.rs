//! Packed tensor: quantized values, scales and zero points in their storage format.

use crate::Format;

/// Parts of a quantized tensor; `W` is the storage of a part: a vector, a slice or a device buffer.
#[derive(Debug, Clone, Copy)]
pub struct PackedTensor<W> {
    /// Storage format.
    pub format: Format,
    /// Number of rows.
    pub rows: usize,
    /// Values per row.
    pub cols: usize,
    /// Quantized values, each row in whole 32-bit words, first value in the lowest bits.
    pub codes: W,
    /// Scales, packed without gaps; `None` for unquantized values.
    pub scales: Option<W>,
    /// Zero points, packed without gaps.
    pub zeros: Option<W>,
    /// Second-level scales in f32.
    pub outer_scales: Option<W>,
    /// 2:4 metadata: positions of the two stored values of every four, ascending, two bits each; eight quadruples per
    /// word.
    pub positions: Option<W>,
}

impl<W> PackedTensor<W> {
    /// Moves the parts to another storage.
    pub fn try_map<V, E>(self, mut move_part: impl FnMut(W) -> Result<V, E>) -> Result<PackedTensor<V>, E> {
        let Self { format, rows, cols, codes, scales, zeros, outer_scales, positions } = self;
        let codes = move_part(codes)?;
        let mut move_optional = |part: Option<W>| part.map(&mut move_part).transpose();
        let (scales, zeros) = (move_optional(scales)?, move_optional(zeros)?);
        let (outer_scales, positions) = (move_optional(outer_scales)?, move_optional(positions)?);
        Ok(PackedTensor { format, rows, cols, codes, scales, zeros, outer_scales, positions })
    }

    /// Moves the parts to another storage that cannot fail.
    pub fn map<V>(self, mut move_part: impl FnMut(W) -> V) -> PackedTensor<V> {
        match self.try_map(|part| Ok::<V, std::convert::Infallible>(move_part(part))) {
            Ok(moved) => moved,
            Err(never) => match never {},
        }
    }

    /// Borrows the parts.
    pub fn as_refs(&self) -> PackedTensor<&W> {
        let Self { format, rows, cols, codes, scales, zeros, outer_scales, positions } = self;
        let (format, rows, cols, scales) = (*format, *rows, *cols, scales.as_ref());
        let (zeros, outer_scales, positions) = (zeros.as_ref(), outer_scales.as_ref(), positions.as_ref());
        PackedTensor { format, rows, cols, codes, scales, zeros, outer_scales, positions }
    }

    /// Storage of all parts that exist, in a fixed order.
    pub fn into_parts(self) -> Vec<W> {
        [Some(self.codes), self.scales, self.zeros, self.outer_scales, self.positions].into_iter().flatten().collect()
    }

    /// Scales per row.
    pub fn scales_per_row(&self) -> usize {
        self.format.scale_count(1, self.cols)
    }
}

impl PackedTensor<usize> {
    /// Words of each part of a tensor.
    pub fn word_counts(format: Format, rows: usize, cols: usize) -> Self {
        let optional = |words: usize| (words > 0).then_some(words);
        let scales = format.scale_count(rows, cols);
        Self {
            format,
            rows,
            cols,
            codes: rows * format.words_per_row(cols),
            scales: optional(format.scale.words_for(scales)),
            zeros: format.zero.element().map(|element| element.words_for(scales)),
            outer_scales: optional(format.outer_scale_count(rows)),
            positions: format.sparse_2to4.then_some(rows * format.position_words_per_row(cols)),
        }
    }
}

impl Format {
    /// Bytes of a packed tensor: quantized values, zero points and scales of both levels, each in whole words.
    pub fn bytes(&self, rows: usize, cols: usize) -> u64 {
        4 * PackedTensor::word_counts(*self, rows, cols).into_parts().into_iter().sum::<usize>() as u64
    }
}
