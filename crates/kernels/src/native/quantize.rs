//! e4m3 quantization of bf16 matrices.

use super::{DeviceBuffer, NativeError, kernel::CudaKernel};
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

/// Quantization plan, created by [`QuantizePlan::rows`], [`QuantizePlan::columns`] and others.
#[derive(Debug)]
pub struct QuantizePlan {
    pub(super) kernel: CudaKernel,
    pub(super) scales_bytes: usize,
    pub(super) algorithm: String,
}

impl QuantizePlan {
    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.kernel.first_input_bytes()
    }

    /// Bytes of the quantized values.
    pub fn quantized_bytes(&self) -> usize {
        self.x_bytes() / 2
    }

    /// Bytes of the scales.
    pub fn scales_bytes(&self) -> usize {
        self.scales_bytes
    }

    /// Enqueues a launch.
    pub fn enqueue(
        &self,
        x: &DeviceBuffer,
        codes: &mut DeviceBuffer,
        scales: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&x.memory], &mut [&mut codes.memory, &mut scales.memory])
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}
