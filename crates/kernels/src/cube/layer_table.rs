//! Table of the layer kernels in CubeCL.

use super::Cube;
use super::gemm::{Int8MmaGemm, MmaGemm, SkinnyGemm, StagedMmaGemm, TiledGemm, TiledInt8Gemm};
use crate::layer::KernelTable;
use cubecl::Runtime;

/// Returns the layer kernels in CubeCL. The kernels of all runtimes accept the same layers.
pub fn layer_kernels<R: Runtime>() -> &'static KernelTable<Cube<R>> {
    &[&StagedMmaGemm, &MmaGemm, &SkinnyGemm, &TiledGemm, &Int8MmaGemm, &TiledInt8Gemm]
}
