//! Quantized tensor on the host.

use crate::format::Format;
use crate::packing;

/// Quantized tensor on the host.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QuantizedTensor {
    /// Storage format.
    pub format: Format,
    /// Number of rows.
    pub rows: usize,
    /// Values per row.
    pub cols: usize,
    /// Quantized values of each row in whole words, see [`packing`].
    pub codes: Vec<u32>,
    /// Scales of all groups, row by row; NaN if the group holds an infinity or a NaN, in which case its quantized
    /// values are 0.
    pub scales: Vec<f32>,
    /// Zero points of all groups, if the format has any.
    pub zeros: Vec<f32>,
    /// Second-level scales, see [`Format::outer_scale_count`].
    pub outer_scales: Vec<f32>,
}

impl QuantizedTensor {
    /// Returns a quantized value.
    pub fn code(&self, row: usize, col: usize) -> u32 {
        let words = self.format.words_per_row(self.cols);
        packing::unpack(&self.codes[row * words..][..words], col, self.format.bits())
    }

    /// Quantized values of all elements, one per byte, without padding.
    pub fn codes(&self) -> Vec<u8> {
        let row = |row: usize| (0..self.cols).map(move |col| self.code(row, col) as u8);
        (0..self.rows).flat_map(row).collect()
    }

    /// Row and group of the first scale or zero point that is not finite: the group holds an infinity or a NaN, or its
    /// range exceeds the dtype of the scale or zero point.
    pub fn first_non_finite(&self) -> Option<(usize, usize)> {
        let per_row = (self.scales.len() / self.rows.max(1)).max(1);
        let infinite = |numbers: &[f32]| numbers.iter().position(|number| !number.is_finite());
        let group = infinite(&self.scales).into_iter().chain(infinite(&self.zeros)).min();
        let group = group.map(|at| (at / per_row, at % per_row));
        group.into_iter().chain(infinite(&self.outer_scales).map(|row| (row, 0))).min()
    }
}
