//! GEMMs on packed weights, one file per kernel. The files `spec`, `tile`, `mma_*` and `split_k` hold what several
//! kernels use.

#[allow(
    unsafe_code,
    clippy::collapsible_if,
    reason = "launching unchecked kernels; compile-time conditions need nesting"
)]
mod int8_mma;
#[allow(
    unsafe_code,
    clippy::if_same_then_else,
    reason = "launching unchecked kernels; compile-time branches look alike"
)]
mod mma;
mod mma_config;
mod mma_dequant;
mod mma_tiles;
#[allow(
    unsafe_code,
    clippy::if_same_then_else,
    reason = "launching unchecked kernels; compile-time branches look alike"
)]
mod skinny;
mod spec;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod split_k;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod staged_mma;
mod tile;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod tiled;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod tiled_int8;

pub(super) use int8_mma::Int8MmaGemm;
pub(super) use mma::MmaGemm;
pub(super) use skinny::SkinnyGemm;
pub(super) use staged_mma::StagedMmaGemm;
pub(super) use tiled::TiledGemm;
pub(super) use tiled_int8::TiledInt8Gemm;
