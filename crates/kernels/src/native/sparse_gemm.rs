//! 2:4 sparse GEMM on sparse tensor cores (`mma.sp`).

use std::sync::Arc;

use super::{
    ComputeCapability, CudaDevice, DeviceBuffer, LinearShape, NativeError,
    driver::DeviceMemory,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    layer_specs::{DynamicSpec, SparseSpec, SparseWeight},
    nvrtc::CudaSource,
    packed_gemm::SplitKWorkspace,
    sizes::{MULTIPROCESSORS, check_size},
};
use crate::Dtype;

/// Kernels that reorder a weight once and multiply it, and the split-K workspace.
#[derive(Debug)]
pub(super) struct SparseGemm {
    order: CudaKernel,
    units_bytes: usize,
    kernel: CudaKernel,
    split_k: Option<SplitKWorkspace>,
    pub(super) algorithm: String,
}

impl SparseGemm {
    /// True if the format is supported: 16-bit floats, int4, int8 and e4m3 on suitable GPUs.
    pub(super) fn is_supported(spec: SparseSpec, capability: ComputeCapability) -> bool {
        match spec.dynamic() {
            None => spec.kind != Dtype::F32 && capability >= ComputeCapability::AMPERE,
            Some(dynamic) if dynamic.is_e4m3() => capability >= ComputeCapability::E4M3,
            Some(_) => capability >= ComputeCapability::AMPERE,
        }
    }

    /// Compiles for a supported specification and checked sizes; rows of x have `stride` elements.
    pub(super) fn new(
        device: &Arc<CudaDevice>,
        spec: SparseSpec,
        shape: LinearShape,
        stride: usize,
    ) -> Result<Self, NativeError> {
        let LinearShape { m, k, n } = shape;
        let tile = SparseGemmTile::new(shape);
        let units = check_size("the number of units", n.div_ceil(16) * k.div_ceil(UNIT_K))?;
        let units_bytes = units * unit_bytes(spec);
        let name = format!("order_{}", format_name(spec));
        let mut macros = common_macros(&name, spec.kind, 1);
        macros.extend(format_macros(spec, k));
        let [numbers, places] = stored_reads(spec, shape);
        let order = CudaKernel::prepare(
            device,
            CudaSource::ReorderSparseWeight,
            &name,
            macros,
            KernelArgs {
                reads: vec![numbers, places],
                writes: vec![("units", units_bytes)],
                sizes: (n as u64, units as u64),
            },
            LaunchGeometry { blocks: units.div_ceil(8) as u32, threads: (256, 1) },
        )?;

        let blocks = check_size("the number of blocks", tile.output_tiles(shape) * tile.splits)?;
        let dynamic = spec.dynamic().is_some();
        let x = if dynamic { m * stride } else { shape.x_bytes(spec.kind) };
        let mut reads = vec![("x", x)];
        reads.extend(dynamic.then(|| ("row scales", scale_bytes(spec, m, 4))));
        reads.push(("units", units_bytes));
        reads.extend(weight_scale_bytes(spec, shape).map(|bytes| ("scales", bytes)));
        reads.extend(spec.has_addend.then(|| ("addend", shape.y_bytes(spec.kind))));
        let mut writes = vec![("y", shape.y_bytes(spec.kind))];
        let sums = blocks * tile.rows() * tile.columns;
        let shared =
            (tile.splits > 1).then(|| SplitKWorkspace::new(device, sums, tile.output_tiles(shape))).transpose()?;
        writes.extend(shared.iter().flat_map(SplitKWorkspace::kernel_writes));
        let name = tile.name(spec);
        let extent = KernelArgs { reads, writes, sizes: (m as u64, n as u64) };
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (256, 1) };
        let macros = tile.macros(&name, spec, k, stride);
        let kernel = CudaKernel::prepare(device, CudaSource::SparseGemm, &name, macros, extent, geometry)?;
        let kernel = kernel.with_dynamic_smem(tile.shared_bytes(spec))?;
        Ok(Self { order, units_bytes, kernel, split_k: shared, algorithm: tile.describe(&name) })
    }

    /// Reorders nonzero values and metadata into units.
    pub(super) fn reorder(&self, device: &CudaDevice, parts: [&DeviceMemory; 2]) -> Result<DeviceBuffer, NativeError> {
        let mut units = device.allocate(self.units_bytes)?;
        self.order.enqueue_all(parts, [&mut units.memory])?;
        Ok(units)
    }

    /// Enqueues a launch. Inputs: x, row scales, reordered weight, weight scales, addend; only those of the format.
    pub(super) fn enqueue<'x>(
        &mut self,
        inputs: impl IntoIterator<Item = &'x DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        SplitKWorkspace::enqueue(self.split_k.as_mut(), &self.kernel, inputs, y)
    }
}

/// Elements along k per unit.
const UNIT_K: usize = 64;

/// Bytes of a unit: values and metadata of 16 rows.
fn unit_bytes(spec: SparseSpec) -> usize {
    16 * UNIT_K / 2 * spec.bits() / 8 + 128
}

/// Nonzero values and metadata as stored row by row, with their bytes.
pub(super) fn stored_reads(spec: SparseSpec, LinearShape { k, n, .. }: LinearShape) -> [(&'static str, usize); 2] {
    let kept = match spec.weight {
        SparseWeight::Int4 => k.next_multiple_of(128) / 2,
        _ => (k / 2).next_multiple_of(32),
    };
    [("nonzero values", n * kept * spec.bits() / 8), ("metadata", n * k.div_ceil(32) * 4)]
}

/// Bytes of the weight scales, if the format has any.
pub(super) fn weight_scale_bytes(spec: SparseSpec, LinearShape { k, n, .. }: LinearShape) -> Option<usize> {
    match spec.weight {
        SparseWeight::Float => None,
        SparseWeight::Int4 => Some(n * k.div_ceil(128) * spec.kind.width()),
        SparseWeight::Dynamic(dynamic) if dynamic.is_e4m3() => Some(scale_bytes(spec, n, 4)),
        SparseWeight::Dynamic(_) => Some(scale_bytes(spec, n, spec.kind.width())),
    }
}

fn scale_bytes(spec: SparseSpec, rows: usize, width: usize) -> usize {
    if spec.dynamic().is_some_and(DynamicSpec::is_per_tensor) { width } else { rows * width }
}

/// Format in kernel names.
pub(super) fn format_name(spec: SparseSpec) -> String {
    match spec.weight {
        SparseWeight::Float => format!("sparse_2to4_{}", spec.kind),
        SparseWeight::Int4 => format!("sparse_2to4_int4_128_{}", spec.kind),
        SparseWeight::Dynamic(dynamic) => format!("sparse_2to4_{}_{}", dynamic.format_name(), spec.kind),
    }
}

/// Macros of the sparse-weight header.
pub(super) fn format_macros(spec: SparseSpec, k: usize) -> Vec<String> {
    let kept = match spec.bits() {
        4 => Some("NONZEROS_4BIT"),
        8 => Some("NONZEROS_8BIT"),
        32 => Some("NONZEROS_32BIT"),
        _ => None,
    };
    [format!("K={k}u")].into_iter().chain(kept.map(String::from)).collect()
}

/// Tile configuration of the sparse GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SparseGemmTile {
    /// Rows of x per block.
    columns: usize,
    /// Fragments of 16 weight rows per warp.
    tiles: usize,
    /// Warps that split k.
    split_warps: usize,
    /// Blocks that split k.
    splits: usize,
    /// Weight units in flight per warp.
    units_in_flight: usize,
    /// Pipeline stages of x, in units.
    stages: usize,
}

impl SparseGemmTile {
    /// Two blocks per multiprocessor.
    const TARGET_BLOCKS: usize = 2 * MULTIPROCESSORS;
    const WARPS: usize = 8;

    fn new(shape: LinearShape) -> Self {
        let LinearShape { m, k, .. } = shape;
        // More than 32 rows of x per block were slower than two passes: 22 us instead of 16 us for 64 rows.
        let columns = if m > 64 { 64 } else { m.next_power_of_two().clamp(8, 32) };
        // With more rows of x, loading x in many blocks costs more than a wider reduction.
        let deep = match columns {
            8 => 8,
            16 => 4,
            32 => 2,
            _ => 1,
        };
        let (tiles, flight, stages) = if m > 64 { (2, 2, 4) } else { (1, 4, 4) };
        let tile = Self { columns, tiles, split_warps: deep, splits: 1, units_in_flight: flight, stages };
        let max_splits = (k.div_ceil(UNIT_K) / (flight * deep)).clamp(1, 16);
        Self { splits: (Self::TARGET_BLOCKS / tiles / tile.output_tiles(shape)).clamp(1, max_splits), ..tile }
    }

    /// Weight rows per block.
    fn rows(&self) -> usize {
        16 * self.tiles * Self::WARPS / self.split_warps
    }

    /// Output tiles; each is computed by one block, or by several with split-K.
    fn output_tiles(&self, shape: LinearShape) -> usize {
        shape.n.div_ceil(self.rows()) * shape.m.div_ceil(self.columns)
    }

    /// Shared memory of the stages of x, reused to transpose the accumulators.
    fn shared_bytes(&self, spec: SparseSpec) -> usize {
        let element_bytes = if spec.bits() == 8 { 1 } else { 2 };
        let transposed_bytes = 4 * self.split_warps * self.columns.min(16) * (self.rows() + 4);
        (self.stages * self.split_warps * self.columns * UNIT_K * element_bytes).max(transposed_bytes)
    }

    /// Kernel name with the parameters of the tile, which is all that a profiler shows.
    fn name(&self, spec: SparseSpec) -> String {
        let after = spec.activation().map(|activation| format!("_{activation}")).unwrap_or_default();
        let Self { columns, split_warps: deep, splits, .. } = self;
        format!("{}{after}_product_{columns}x{}_k{deep}x{splits}", format_name(spec), self.rows())
    }

    fn macros(&self, name: &str, spec: SparseSpec, k: usize, stride: usize) -> Vec<String> {
        let Self { columns, tiles, split_warps: deep, splits, units_in_flight: flight, stages } = self;
        let dynamic = spec.dynamic();
        let whole = dynamic.is_some() || k.is_multiple_of(vector_width(spec.kind));
        let mut macros = common_macros(name, spec.kind, if whole { vector_width(spec.kind) } else { 1 });
        macros.extend(format_macros(spec, k));
        macros.extend(dynamic.iter().flat_map(|spec| spec.macros()));
        macros.extend([format!("STRIDE={stride}u"), format!("BLOCK_M={columns}"), format!("FRAGMENTS_N={tiles}")]);
        macros.extend([format!("WARPS_K={deep}"), format!("SPLIT_K={splits}")]);
        macros.extend([format!("PREFETCH_UNITS={flight}"), format!("STAGES={stages}")]);
        macros.extend(spec.activation().map(|activation| format!("ACTIVATE={activation}")));
        macros.extend(spec.has_addend.then(|| "ADDEND".into()));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { columns, split_warps: deep, splits, units_in_flight: flight, stages, .. } = self;
        format!(
            "{name}: sparse tensor cores, tile of {columns} rows of x by {} weight rows, split-K over {deep} warps and \
             {splits} blocks, {flight} weight units per warp in flight, {} stages of x",
            self.rows(),
            stages * deep
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::layer_specs::tests::dynamic_specs;
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::{Activation, Prologue};

    /// Every format, without prologue and epilogue.
    pub(in crate::native) fn all_specs() -> Vec<SparseSpec> {
        let dynamic = dynamic_specs().filter(|spec| spec.prologue == Prologue::None && !spec.is_int4());
        let dynamic: Vec<_> = dynamic.filter(|spec| spec.is_e4m3() || !spec.is_per_tensor()).collect();
        let specs = |kind| {
            let dynamic = dynamic.iter().filter(move |spec| spec.kind == kind).map(|&spec| SparseWeight::Dynamic(spec));
            let weights = [SparseWeight::Float, SparseWeight::Int4].into_iter().chain(dynamic);
            weights.map(move |weight| SparseSpec { kind, weight, has_addend: false })
        };
        Dtype::ALL.into_iter().flat_map(specs).collect()
    }

    #[test]
    fn tiles_cover_every_shape_within_smem() {
        for spec in all_specs() {
            for (m, k, n) in [(1, 4, 1), (8, 4096, 4096), (20, 132, 17), (64, 28672, 8192), (4096, 4096, 4096)] {
                let shape = LinearShape { m, k, n };
                let tile = SparseGemmTile::new(shape);
                assert!(tile.shared_bytes(spec) <= 100 << 10, "{spec:?} {shape} {tile:?}");
                assert!(
                    tile.splits <= k.div_ceil(UNIT_K) && tile.columns.is_multiple_of(8),
                    "{spec:?} {shape} {tile:?}"
                );
                assert!(tile.stages > 2, "{spec:?} {shape} {tile:?}");
            }
        }
        let spec = all_specs()[0];
        assert_eq!(
            (unit_bytes(spec), stored_reads(spec, LinearShape { m: 1, k: 132, n: 3 })[1]),
            (2176, ("metadata", 60))
        );
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile_for_every_spec_and_tile() {
        let activations = Activation::ALL.map(Some).into_iter().chain([None]).cycle();
        for (spec, activation) in all_specs().into_iter().zip(activations) {
            if !SparseGemm::is_supported(spec, ComputeCapability::HOPPER) {
                continue;
            }
            for (at, (m, k, n)) in
                [(1, 4096_usize, 512), (20, 132, 17), (64, 1000, 64), (500, 4096, 1000)].into_iter().enumerate()
            {
                let weight = match spec.weight {
                    SparseWeight::Dynamic(dynamic) => SparseWeight::Dynamic(DynamicSpec { activation, ..dynamic }),
                    other => other,
                };
                let spec = SparseSpec { weight, has_addend: at % 2 == 0, ..spec };
                let stride = if spec.dynamic().is_some() { k.next_multiple_of(32) } else { k };
                let macros = SparseGemmTile::new(LinearShape { m, k, n }).macros("product", spec, k, stride);
                assert_compiles(CudaSource::SparseGemm, &macros);
            }
            let mut macros = common_macros("order", spec.kind, 1);
            macros.extend(format_macros(spec, 132));
            assert_compiles(CudaSource::ReorderSparseWeight, &macros);
        }
    }
}
