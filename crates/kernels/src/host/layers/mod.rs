//! Kernels of linear layers on the CPU: one file per kernel, and the table from which the cheapest is selected.

use super::FloatVec;
use crate::layer::{self, KernelTable, LayerBackend, LinearShape, Rejection};
use crate::{Dtype, Element, Format, LayerSpec, Prologue};

/// Declares the modules of the kernels and their table, in order of preference.
macro_rules! layer_kernels {
    ($($module:ident::$kernel:ident,)*) => {
        $(mod $module;)*

        /// Kernels of linear layers on the CPU.
        pub static LAYER_KERNELS: &KernelTable<Cpu> = &[$(&$module::$kernel),*];
    };
}

layer_kernels! {
    floats::Floats,
    int8_weight::Int8WeightOnly,
    int4_weight::Int4WeightOnly,
    int8_dynamic::Int8Dynamic,
}

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

/// Selects the cheapest kernel that accepts a layer, and prepares it with the weight.
pub fn prepare_layer(
    context: &HostLayerContext,
    spec: &LayerSpec,
    shape: LinearShape,
) -> Result<Box<dyn HostLayer>, Rejection> {
    layer::prepare(LAYER_KERNELS, context, &(), spec, shape)
}

/// Rejects layers that no kernel of the CPU computes: those with a prologue, an epilogue, or sparsity, and dtypes that
/// are not stored.
fn require_dense_gemm(spec: &LayerSpec) -> Result<(), Rejection> {
    let gemm_only = spec.prologue == Prologue::None && spec.activation.is_none() && !spec.has_addend;
    if gemm_only && spec.sparsity.is_none() && is_stored(Element::Float(spec.dtype)) {
        Ok(())
    } else {
        Err(Rejection::Spec("a dense layer in f32 or bf16, without prologue and epilogue"))
    }
}

/// True if kernels read values of this type.
fn is_stored(element: Element) -> bool {
    matches!(element, Element::Float(Dtype::F32 | Dtype::Bf16))
}
