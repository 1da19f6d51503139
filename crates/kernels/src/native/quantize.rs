//! e4m3 codes of rows or of columns, each with its scale.

use super::{Buffer, NativeError, kernel::Kernel};
use crate::rowwise::STATIC_SCALE;

/// Where the scales of quantized numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScaleSource {
    /// The largest magnitude of each row, or of each column.
    Largest,
    /// [`STATIC_SCALE`] for everything.
    Static,
}

impl ScaleSource {
    /// How many scales there are for so many rows or columns.
    pub(super) fn count(self, lines: usize) -> usize {
        match self {
            Self::Largest => lines,
            Self::Static => 1,
        }
    }

    pub(super) fn macros(self) -> Vec<String> {
        match self {
            Self::Largest => Vec::new(),
            Self::Static => vec![format!("SCALE={STATIC_SCALE:e}f")],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Largest => "quantize",
            Self::Static => "quantize_static",
        }
    }
}

/// A plan of e4m3 codes and their scales, made by [`Quantize::rows`] or [`Quantize::columns`].
#[derive(Debug)]
pub struct Quantize {
    pub(super) kernel: Kernel,
    pub(super) scales_bytes: usize,
    pub(super) algorithm: String,
}

impl Quantize {
    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.kernel.bytes()
    }

    /// Bytes of the codes.
    pub fn codes_bytes(&self) -> usize {
        self.x_bytes() / 2
    }

    /// Bytes of the scales.
    pub fn scales_bytes(&self) -> usize {
        self.scales_bytes
    }

    /// Enqueues one run.
    pub fn enqueue(&self, x: &Buffer, codes: &mut Buffer, scales: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&x.memory], &mut [&mut codes.memory, &mut scales.memory])
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}
