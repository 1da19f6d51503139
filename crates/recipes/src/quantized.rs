//! A tensor stored small, on the host.

use crate::format::Format;
use crate::packing;

/// A tensor stored small, on the host.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Quantized {
    /// How it is stored.
    pub format: Format,
    /// Number of rows.
    pub rows: usize,
    /// Numbers in a row.
    pub cols: usize,
    /// The codes of each row in whole words, see [`packing`].
    pub codes: Vec<u32>,
    /// One scale for each group, row by row; NaN where the group holds an infinity or a NaN, whose codes are then all 0.
    pub scales: Vec<f32>,
    /// One zero for each group, if the format has any.
    pub zeros: Vec<f32>,
    /// Scales of the second level, see [`Format::outer_scales`].
    pub outer: Vec<f32>,
}

impl Quantized {
    /// A code.
    pub fn code(&self, row: usize, col: usize) -> u32 {
        let words = self.format.words_per_row(self.cols);
        packing::unpack(&self.codes[row * words..][..words], col, self.format.bits())
    }

    /// The codes of all numbers, one in each byte, without what fills rows up.
    pub fn codes(&self) -> Vec<u8> {
        let row = |row: usize| (0..self.cols).map(move |col| self.code(row, col) as u8);
        (0..self.rows).flat_map(row).collect()
    }

    /// The first row and group without a finite scale or zero: they hold an infinity or a NaN, or numbers that no scale or
    /// zero in its type covers.
    pub fn not_finite(&self) -> Option<(usize, usize)> {
        let per_row = (self.scales.len() / self.rows.max(1)).max(1);
        let infinite = |numbers: &[f32]| numbers.iter().position(|number| !number.is_finite());
        let group = infinite(&self.scales).into_iter().chain(infinite(&self.zeros)).min();
        let group = group.map(|at| (at / per_row, at % per_row));
        group.into_iter().chain(infinite(&self.outer).map(|row| (row, 0))).min()
    }
}
