//! Kernels of linear layers on CUDA: one file per kernel, and the table from which the cheapest is selected.

use super::layer_plan::Cuda;
use crate::layer::KernelTable;

mod fake_quantized_input;
mod quantized_input;

/// Declares the modules of the kernels and their table, in order of preference.
macro_rules! layer_kernels {
    ($($module:ident::$kernel:ident,)*) => {
        $(mod $module;)*

        /// Kernels of linear layers on CUDA.
        pub static LAYER_KERNELS: &KernelTable<Cuda> = &[$(&$module::$kernel),*];
    };
}

layer_kernels! {
    gemv::Gemv,
    cublaslt::CublasLt,
    streamed_int4::StreamedInt4,
    tiled_wgmma::TiledWgmma,
    packed::Packed,
    quantized_few_rows::QuantizedFewRows,
    dequantized::Dequantized,
    int8_fp8_wgmma::Int8Fp8Wgmma,
    int4_by_int8::Int4ByInt8,
    cublaslt_scaled::CublasLtScaled,
    cublaslt_quantized::CublasLtQuantized,
    sparse_mma::SparseMma,
    expanded_sparse::ExpandedSparse,
    block_sparse::BlockSparse,
    separate_stages::SeparateStages,
}

impl Cuda {
    /// Kernels of linear layers, for plans that contain a plan of another layer.
    pub(super) fn kernels() -> &'static KernelTable<Self> {
        LAYER_KERNELS
    }
}
