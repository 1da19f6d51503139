//! e4m3 GEMM on Hopper that transposes the second operand in registers.

use super::{
    ComputeCapability, CudaDevice, CudaKernel, Float8Output, LinearShape, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    sizes::{MULTIPROCESSORS, check_shape, check_size},
    tma_tiles::TmaTiles,
};

/// Output tile of a block; a cluster covers two tiles along n.
const TILE: (usize, usize) = (128, 128);
const CLUSTER: usize = 2;
/// Threads of a block: one producer warp group and two consumer warp groups.
const THREADS: usize = 3 * 128;
/// Tile size along k of one pipeline stage.
const TILE_K: usize = 128;
/// Pipeline stages.
const STAGES: usize = 6;
const SMEM_BYTES: usize = STAGES * TILE_K * (TILE.0 + TILE.1);
/// Maximum rows. For more, transposing first and using cuBLASLt may be faster. Measured with 128 and 512 rows: with 512
/// rows this kernel is 1.7 times as fast as transposing first for a w of 268 MB, and equally fast for a w of 17 MB,
/// which fits the cache. Extrapolated, the break-even of the large w is between 1000 and 1600 rows.
const MAX_ROWS: usize = 768;

/// True if the kernel supports the sizes and is the fastest.
pub(super) fn is_faster(shape: LinearShape, capability: ComputeCapability) -> bool {
    capability == ComputeCapability::WGMMA
        && shape.m <= MAX_ROWS
        && shape.k.is_multiple_of(16)
        && shape.n.is_multiple_of(16)
}

/// Compiles for supported sizes. Inputs: x, w, row and column scales if scaled, addend; output: y.
pub(super) fn kernel(device: &CudaDevice, shape: LinearShape, output: Float8Output) -> Result<CudaKernel, NativeError> {
    let LinearShape { m, k, n } = check_shape(shape)?;
    let name = "transposed_b_gemm";
    let mut reads = vec![("x", m * k), ("w", k * n)];
    if output.inputs() > 2 {
        reads.extend([("row scales", 4 * m), ("column scales", 4 * n)]);
    }
    if output == Float8Output::ScaledAdded {
        reads.push(("addend", shape.y_bytes(output.kind())));
    }
    let args = KernelArgs::new(reads, [("y", shape.y_bytes(output.kind()))], (m, n));
    let pairs = check_size("the number of tiles", m.div_ceil(TILE.0) * n.div_ceil(CLUSTER * TILE.1))?;
    let blocks = CLUSTER * pairs.min(MULTIPROCESSORS / CLUSTER);
    let (macros, geometry) = (macros(name, output, k), LaunchGeometry::new(blocks, (THREADS, 1))?);
    let kernel = CudaKernel::prepare(device, CudaSource::TransposedBGemm, name, macros, args, geometry)?;
    let boxes = vec![TmaTiles::for_bytes(0, m, k, TILE.0 / CLUSTER), TmaTiles::for_bytes(1, k, n, TILE_K)];
    let description = format!(
        "{name}: wgmma, w transposed in registers, tile {}x{}, {blocks} blocks in clusters of {CLUSTER}, {STAGES} \
         stages of k={TILE_K}",
        TILE.0, TILE.1
    );
    Ok(kernel.with_tma_tiles(boxes).with_dynamic_smem(SMEM_BYTES)?.with_description(description))
}

fn macros(name: &str, output: Float8Output, k: usize) -> Vec<String> {
    let mut macros = common_macros(name, output.kind(), 1);
    macros.extend([format!("K={k}"), format!("STAGES={STAGES}"), format!("INPUTS={}", output.inputs())]);
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::Dtype;

    #[test]
    fn chosen_for_few_aligned_rows_on_hopper() {
        let is_for = |m, k, n| {
            let shape = LinearShape { m, k, n };
            assert!(!is_faster(shape, ComputeCapability::E4M3));
            is_faster(shape, ComputeCapability::WGMMA)
        };
        assert!(is_for(1, 16, 16) && is_for(768, 32768, 8192));
        assert!(!is_for(769, 32768, 8192) && !is_for(16, 24, 16) && !is_for(16, 16, 24));
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_output() {
        use Float8Output::{Plain, Scaled, ScaledAdded};
        for output in Dtype::ALL.into_iter().flat_map(|kind| [Plain(kind), Scaled(kind)]).chain([ScaledAdded]) {
            for k in [16, 256, 1104] {
                assert_compiles(CudaSource::TransposedBGemm, &macros("transposed_b_gemm", output, k));
            }
        }
    }
}
