//! e4m3 quantization of bf16 matrices.

use super::kernel::KernelArgs;
use crate::rowwise::STATIC_SCALE;

/// Source of quantization scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScaleSource {
    /// amax of each row, column or block.
    Amax,
    /// [`STATIC_SCALE`] for all elements.
    Static,
}

impl ScaleSource {
    /// Number of scales for `lines` rows or columns.
    pub(super) fn count(self, lines: usize) -> usize {
        match self {
            Self::Amax => lines,
            Self::Static => 1,
        }
    }

    pub(super) fn macros(self) -> Vec<String> {
        match self {
            Self::Amax => Vec::new(),
            Self::Static => vec![format!("STATIC_SCALE={STATIC_SCALE:e}f")],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Amax => "quantize",
            Self::Static => "quantize_static",
        }
    }
}

/// Arguments of a kernel that quantizes x[rows, columns] in bf16 with this number of scales.
pub(super) fn args(rows: usize, columns: usize, scales: usize) -> KernelArgs {
    let writes = [("quantized values", rows * columns), ("scales", 4 * scales)];
    KernelArgs::new([("x", 2 * rows * columns)], writes, (rows, columns))
}
