//! Layers on the CPU: weights, prepared layers, and the checks that their kernels share.

use super::FloatVec;
use crate::layer::{LayerBackend, Rejection};
use crate::{Dtype, Element, Format, LayerSpec, Prologue};

/// The CPU as a backend of layer kernels.
#[derive(Debug)]
pub enum Cpu {}

impl LayerBackend for Cpu {
    type Capability = ();
    type Context = HostLayerContext;
    type Plan = Box<dyn HostLayer>;
    type Error = Rejection;
}

/// Weight of a layer, and the quantization of its input.
#[derive(Debug, Clone)]
pub struct HostLayerContext {
    /// Weight in host memory.
    pub weight: HostWeight,
    /// Quantizes rows of `usize` elements to a format.
    pub quantize: fn(&[f32], usize, Format) -> QuantizedRows,
}

/// Weight in host memory.
#[derive(Debug, Clone)]
pub enum HostWeight {
    /// Unquantized values in the dtype of the layer, row by row.
    Floats(FloatVec),
    /// Quantized values in words, and scales and zero points in f32.
    Quantized {
        /// Quantized values.
        codes: Vec<u32>,
        /// Scales.
        scales: Vec<f32>,
        /// Zero points.
        zeros: Vec<f32>,
    },
}

/// Quantized rows of an input.
#[derive(Debug, Clone)]
pub struct QuantizedRows {
    /// Quantized values in words.
    pub codes: Vec<u32>,
    /// Scale of each row.
    pub scales: Vec<f32>,
}

/// Layer on the CPU.
pub trait HostLayer: Send + Sync {
    /// Multiplies rows of `k` elements by the weight.
    fn run(&self, x: &[f32], k: usize, y: &mut [f32]);

    /// Bytes of the weight.
    fn weight_bytes(&self) -> usize;

    /// Name of the kernel for `m` rows.
    fn kernel(&self, m: usize) -> String;
}

/// Rejects layers that no CPU kernel computes: layers with a prologue, an epilogue, sparsity, or a dtype that is not
/// stored.
pub(super) fn require_dense_gemm(spec: &LayerSpec) -> Result<(), Rejection> {
    let gemm_only = spec.prologue == Prologue::None && spec.activation.is_none() && !spec.has_addend;
    if gemm_only && spec.sparsity.is_none() && is_stored(Element::Float(spec.dtype)) {
        Ok(())
    } else {
        Err(Rejection::Spec("a dense layer in f32 or bf16, without prologue and epilogue"))
    }
}

/// True if kernels read values of this type.
pub(super) fn is_stored(element: Element) -> bool {
    matches!(element, Element::Float(Dtype::F32 | Dtype::Bf16))
}
