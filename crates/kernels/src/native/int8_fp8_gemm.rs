//! int8 and e4m3 GEMM with fused epilogue (scales, activation, addend) by wgmma on Hopper.

use std::sync::Arc;

use super::{
    ComputeCapability, CudaDevice, LinearShape, NativeError,
    driver::DeviceMemory,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    layer_specs::DynamicSpec,
    nvrtc::CudaSource,
    sizes::{MULTIPROCESSORS, check_size},
    tma_tiles::TmaTiles,
};
use crate::{Activation, Dtype, Float8Accumulation};

/// Compiled GEMM kernel.
#[derive(Debug)]
pub(super) struct Int8Fp8Gemm {
    kernel: CudaKernel,
    pub(super) algorithm: String,
}

/// Output tile of a block; a cluster covers two tiles along m.
const TILE: (usize, usize) = (128, 256);
const CLUSTER: usize = 2;
/// Threads of a block: one producer warp group and two consumer warp groups.
const THREADS: u32 = 3 * 128;
/// Tile size along k of one pipeline stage.
const TILE_K: usize = 128;
/// Pipeline stages.
const STAGES: usize = 4;
const SMEM_BYTES: usize = STAGES * TILE_K * (TILE.0 + TILE.1);
/// Tile columns per swizzle band: blocks process all rows of a band before the next band, for L2 reuse.
const SWIZZLE_COLUMNS: usize = 8;
/// Minimum number of tile pairs. With fewer, a third of the clusters idles and cuBLASLt's smaller tiles win: 512 rows
/// by 4096 columns took 28 us here and 26 us there, 1024 rows 33 us and 45 us.
const MIN_TILE_PAIRS: usize = MULTIPROCESSORS / CLUSTER * 2 / 3;

impl Int8Fp8Gemm {
    /// True if the kernel supports the specification and is the fastest. y is written in 16-byte vectors. For e4m3,
    /// cuBLASLt also fuses the scales, and a ReLU without an addend; it is then equally fast, and faster for few tiles.
    pub(super) fn is_faster(spec: DynamicSpec, shape: LinearShape, capability: ComputeCapability) -> bool {
        let applied = matches!((spec.activation, spec.has_addend), (None, _) | (Some(Activation::Relu), false));
        let gains =
            if spec.is_e4m3() { spec.accumulation == Float8Accumulation::Fast && !applied } else { !spec.is_int4() };
        gains
            && capability == ComputeCapability::WGMMA
            && spec.kind != Dtype::F32
            && shape.n.is_multiple_of(vector_width(spec.kind))
            && shape.m > TILE.0
            && tile_pairs(shape) >= MIN_TILE_PAIRS
    }

    /// Compiles for a supported specification and checked sizes. Rows of quantized values are `filled_k` long.
    pub(super) fn new(
        device: &Arc<CudaDevice>,
        spec: DynamicSpec,
        shape: LinearShape,
        filled_k: usize,
    ) -> Result<Self, NativeError> {
        let LinearShape { m, n, .. } = shape;
        let pairs = check_size("the number of tiles", tile_pairs(shape))?;
        let name = format!("{}_product{}", spec.format_name(), spec.epilogue_name());
        let mut reads = vec![("x", m * filled_k), ("w", n * filled_k)];
        reads.extend(spec.scale_reads(shape));
        reads.extend(spec.has_addend.then(|| ("addend", shape.y_bytes(spec.kind))));
        let writes = vec![("y", shape.y_bytes(spec.kind))];
        let extent = KernelArgs { reads, writes, sizes: (m as u64, n as u64) };
        let blocks = CLUSTER * pairs.min(MULTIPROCESSORS / CLUSTER);
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (THREADS, 1) };
        let kernel = CudaKernel::prepare(
            device,
            CudaSource::Int8Fp8Gemm,
            &name,
            macros(&name, spec, filled_k),
            extent,
            geometry,
        )?;
        Ok(Self {
            kernel: kernel
                .with_tma_tiles(vec![
                    TmaTiles::for_bytes(0, m, filled_k, TILE.0),
                    TmaTiles::for_bytes(1, n, filled_k, TILE.1 / CLUSTER),
                ])
                .with_dynamic_smem(SMEM_BYTES)?,
            algorithm: format!(
                "{name}: wgmma, tile {}x{}, {blocks} blocks in clusters of {CLUSTER}, {STAGES} stages of k={TILE_K}",
                TILE.0, TILE.1
            ),
        })
    }

    /// Enqueues a launch on the quantized x and w, row and column scales, and the addend.
    pub(super) fn enqueue(
        &self,
        codes: [&DeviceMemory; 2],
        scales: [&DeviceMemory; 2],
        added: Option<&DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        self.kernel.enqueue_all(codes.into_iter().chain(scales).chain(added), [y])
    }
}

fn tile_pairs(shape: LinearShape) -> usize {
    shape.m.div_ceil(CLUSTER * TILE.0) * shape.n.div_ceil(TILE.1)
}

fn macros(name: &str, spec: DynamicSpec, filled_k: usize) -> Vec<String> {
    let mut macros = common_macros(name, spec.kind, vector_width(spec.kind));
    macros.extend([format!("K={filled_k}"), format!("STAGES={STAGES}"), format!("RASTER_BAND={SWIZZLE_COLUMNS}")]);
    macros.extend(spec.macros());
    macros.extend(spec.epilogue_macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{layer_specs::tests::dynamic_specs, nvrtc::tests::assert_compiles};
    use super::*;

    #[test]
    fn chosen_where_cublaslt_cannot_fuse_the_epilogue() {
        for spec in dynamic_specs() {
            let is_for = |sums, activation, added, m, n| {
                let spec = DynamicSpec { accumulation: sums, activation, has_addend: added, ..spec };
                Int8Fp8Gemm::is_faster(spec, LinearShape { m, k: 100, n }, ComputeCapability::HOPPER)
            };
            let halves = spec.kind != Dtype::F32;
            let (int8, e4m3) = (halves && !spec.is_e4m3() && !spec.is_int4(), halves && spec.is_e4m3());
            let (fast, promoted, silu) =
                (Float8Accumulation::Fast, Float8Accumulation::Promoted, Some(Activation::Silu));
            for (activation, added, applied) in [
                (None, true, true),
                (Some(Activation::Relu), false, true),
                (Some(Activation::Relu), true, false),
                (silu, false, false),
            ] {
                assert_eq!(is_for(fast, activation, added, 1024, 4096), int8 || e4m3 && !applied, "{spec:?}");
                assert_eq!(is_for(promoted, activation, added, 1024, 4096), int8, "{spec:?}");
            }
            for (m, n) in [(1024, 4100), (512, 4096), (128, 1 << 16)] {
                assert!(!is_for(fast, silu, false, m, n), "{spec:?} {m} {n}");
            }
        }
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_spec() {
        let activations = [None, Some(Activation::Gelu), Some(Activation::Relu), Some(Activation::Silu)];
        for (spec, activation) in dynamic_specs().zip(activations.into_iter().cycle()) {
            let spec = DynamicSpec {
                activation,
                has_addend: activation.is_none(),
                accumulation: Float8Accumulation::Fast,
                ..spec
            };
            if Int8Fp8Gemm::is_faster(spec, LinearShape { m: 1024, k: 100, n: 4096 }, ComputeCapability::HOPPER) {
                assert_compiles(CudaSource::Int8Fp8Gemm, &macros("product", spec, 4096 + 32));
            }
        }
    }
}
