//! Matrix-vector products with up to four vectors.

use std::{ops::RangeInclusive, sync::Arc};

use super::{
    ComputeCapability, CudaDevice, DeviceBuffer, LinearShape, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    layer_specs::{PackedFormat, PackedSpec},
    nvrtc::CudaSource,
    sizes::check_shape,
};
use crate::Dtype;

/// Matrix w of y = x · wᵀ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum GemvMatrix {
    /// Row-major, in the dtype of x and y.
    Unquantized(Dtype),
    /// Packed, dequantized in registers.
    Packed(PackedSpec),
}

/// First compute capability with bf16 tensor cores.
const TENSOR_CORES: ComputeCapability = ComputeCapability { major: 8, minor: 0 };

/// Row lengths of unquantized 16-bit matrices for which this kernel was measured and is faster than cuBLASLt with two to
/// four rows of x.
const K_OF_SEVERAL_ROWS: RangeInclusive<usize> = 4096..=8192;

impl GemvMatrix {
    /// True if this kernel is faster than cuBLASLt, or than the GEMM of a packed weight. Measured on H200 cards:
    ///
    /// | matrix | rows of x | time / time of the other kernel |
    /// |---|---|---|
    /// | bf16 | 1 | 0.64 to 1.01 |
    /// | bf16, k = 4096 to 8192 | 2 | 0.78 to 1.00 |
    /// | bf16, k = 4096 to 8192 | 3 and 4 | 0.81 to 0.99 |
    /// | bf16, other k | 2 and 4 | up to 1.10 |
    /// | f32 | 1, 2, 4 | 0.66 to 1.02, 0.50 to 0.85, 0.49 to 0.70 |
    /// | int8 | 1 | 0.64 to 1.00 |
    /// | int4, mxfp4 | 1 | 0.70 to 0.99, 0.75 to 1.01 |
    ///
    /// For packed weights and more rows of x, the GEMM is as fast or faster.
    pub(super) fn is_faster(self, LinearShape { m, k, .. }: LinearShape, capability: ComputeCapability) -> bool {
        match (self, m) {
            (Self::Packed(spec), 1) => spec.operand_dtype() != Dtype::F32 && capability >= TENSOR_CORES,
            (Self::Unquantized(_), 1) | (Self::Unquantized(Dtype::F32), 2..=4) => true,
            (Self::Unquantized(_), 2..=4) => K_OF_SEVERAL_ROWS.contains(&k),
            _ => false,
        }
    }

    /// Bits of a value.
    fn bits(self) -> u32 {
        match self {
            Self::Unquantized(kind) => 8 * kind.width() as u32,
            Self::Packed(spec) => spec.weight.bits(),
        }
    }

    /// Dtype of the multiplied operands.
    fn operand_dtype(self) -> Dtype {
        match self {
            Self::Unquantized(kind) => kind,
            Self::Packed(spec) => spec.operand_dtype(),
        }
    }

    /// Dtype of y.
    fn output_dtype(self) -> Dtype {
        match self {
            Self::Unquantized(kind) => kind,
            Self::Packed(spec) => spec.kind,
        }
    }

    /// Values of w per access of a thread.
    fn values_per_vector(self) -> usize {
        match self {
            Self::Unquantized(kind) => vector_width(kind),
            Self::Packed(spec) => spec.weight.values_per_vector(),
        }
    }

    /// Words of w per access of a thread.
    fn vector_words(self) -> usize {
        match self {
            Self::Unquantized(_) => 4,
            Self::Packed(spec) => spec.weight.vector_words(),
        }
    }

    fn format_name(self) -> String {
        match self {
            Self::Unquantized(kind) => kind.to_string(),
            Self::Packed(spec) => format!("{}_{}", spec.weight.name(), spec.kind),
        }
    }

    fn reads(self, shape: LinearShape) -> Vec<(&'static str, usize)> {
        match self {
            Self::Unquantized(kind) => vec![("w", shape.w_bytes(kind))],
            Self::Packed(spec) => {
                let input_scales = spec.has_input_scales.then_some(("the input's scales", 4 * shape.m));
                spec.reads(shape).into_iter().chain(spec.tensor_scale_reads()).chain(input_scales).collect()
            }
        }
    }

    fn macros(self, k: usize) -> Vec<String> {
        match self {
            Self::Unquantized(_) => vec![format!("K={k}u"), "UNQUANTIZED".into()],
            Self::Packed(spec) => {
                let mut macros = spec.macros_for_k(k);
                macros.push(format!("SCALE_PAIRS={}", u8::from(spec.supports_pair_dequantize())));
                macros
            }
        }
    }
}

/// Launch configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GemvTile {
    /// True if tensor cores are used.
    tensor_cores: bool,
    /// Weight rows per block.
    rows: usize,
    /// Warps per block, which split k.
    warps: usize,
    /// Vectors of each weight row that a thread loads before use.
    in_flight: usize,
    /// Elements of x per access.
    width: usize,
}

/// Compiled kernel. Inputs: x, the parts of w, tensor-wide scales of w and x, scales of the rows of x, addend.
pub(super) fn prepare(
    device: &CudaDevice,
    matrix: GemvMatrix,
    shape: LinearShape,
    has_addend: bool,
) -> Result<CudaKernel, NativeError> {
    let LinearShape { m, k, n } = check_shape(shape)?;
    let tile = GemvTile::new(matrix, shape, device.compute_capability());
    let name = tile.name(matrix, m);
    let mut reads = vec![("x", shape.x_bytes(matrix.operand_dtype()))];
    reads.extend(matrix.reads(shape));
    let y_bytes = shape.y_bytes(matrix.output_dtype());
    reads.extend(has_addend.then_some(("addend", y_bytes)));
    let extent = KernelArgs::new(reads, [("y", y_bytes)], (m, n));
    let geometry = LaunchGeometry::new(n.div_ceil(tile.rows), (32 * tile.warps, 1))?;
    let macros = tile.macros(&name, matrix, (m, k), has_addend);
    let kernel = CudaKernel::prepare(device, CudaSource::Gemv, &name, macros, extent, geometry)?;
    Ok(kernel.with_description(tile.describe(&name)))
}

impl GemvTile {
    fn new(matrix: GemvMatrix, LinearShape { k, .. }: LinearShape, capability: ComputeCapability) -> Self {
        let operand = matrix.operand_dtype();
        let widest = vector_width(operand);
        // Accesses of a whole warp per row.
        let accesses = k.div_ceil(32 * matrix.values_per_vector());
        // Within 7 % of the fastest of 20 to 40 configurations, on average over 3 to 9 shapes on an H200.
        let (rows, in_flight, warps) = match matrix.bits() {
            16.. => (2, 4, accesses.div_ceil(4).min(8)),
            // Two or more iterations if all warps then have equal work, otherwise as few as four warps allow.
            8 if accesses.is_multiple_of(8) => (2, 2, (accesses / 4).min(4)),
            8 => (2, 2, accesses.div_ceil(2).min(4)),
            // x has more bytes than the weight row, and every row of the block uses it.
            _ => (4, 1, accesses.min(4)),
        };
        Self {
            tensor_cores: operand != Dtype::F32 && capability >= TENSOR_CORES,
            rows,
            warps,
            in_flight,
            width: if k.is_multiple_of(widest) { widest } else { 1 },
        }
    }

    /// Kernel name with the tile parameters, because a profiler shows only the name.
    fn name(&self, matrix: GemvMatrix, m: usize) -> String {
        let by = if self.tensor_cores { "tensor" } else { "float" };
        format!("gemv_{}_{by}_{m}x{}_k{}x{}", matrix.format_name(), self.rows, self.warps, self.in_flight)
    }

    fn macros(&self, name: &str, matrix: GemvMatrix, (m, k): (usize, usize), has_addend: bool) -> Vec<String> {
        let Self { tensor_cores, rows, warps, in_flight, width } = *self;
        let mut macros = common_macros(name, matrix.operand_dtype(), width);
        macros.extend(matrix.macros(k));
        macros.push(format!("TENSOR_CORES={}", u8::from(tensor_cores)));
        macros.push(format!("VECTOR_WORDS={}", matrix.vector_words()));
        macros.push(format!("BLOCK_M={m}"));
        macros.push(format!("ROWS={rows}"));
        macros.push(format!("WARPS={warps}"));
        macros.push(format!("VECTORS_IN_FLIGHT={in_flight}"));
        macros.extend(has_addend.then(|| "ADDEND".into()));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { tensor_cores, rows, warps, in_flight, .. } = self;
        let by = if *tensor_cores { "tensor cores" } else { "CUDA cores" };
        let loads = rows * in_flight;
        format!(
            "{name}: {by}, {rows} weight rows and {warps} warps per block, {loads} weight loads per thread in flight"
        )
    }
}

/// Plan of y = a x for a row-major matrix a[rows, columns], accumulated in f32 and rounded to the dtype.
#[derive(Debug)]
pub struct MatVecPlan {
    kernel: CudaKernel,
}

impl MatVecPlan {
    /// Compiles the kernel for a matrix with `rows` rows of `columns` elements.
    pub fn new(device: &Arc<CudaDevice>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let shape = LinearShape { m: 1, k: columns, n: rows };
        Ok(Self { kernel: prepare(device, GemvMatrix::Unquantized(kind), shape, false)? })
    }

    /// Enqueues a launch.
    pub fn enqueue(&self, a: &DeviceBuffer, x: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all([&x.memory, &a.memory], [&mut y.memory])
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> String {
        self.kernel.algorithm()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{nvrtc::tests::assert_compiles, packed_weight::tests::all_specs};
    use super::*;

    const VOLTA: ComputeCapability = ComputeCapability { major: 7, minor: 0 };

    fn matrices() -> impl Iterator<Item = GemvMatrix> {
        let packed =
            all_specs().into_iter().enumerate().map(|(at, spec)| PackedSpec { has_input_scales: at % 3 == 0, ..spec });
        Dtype::ALL.into_iter().map(GemvMatrix::Unquantized).chain(packed.map(GemvMatrix::Packed))
    }

    #[test]
    fn tiles_fit_any_length() {
        for matrix in matrices() {
            for k in [1, 17, 129, 1000, 2880, 4096, 28672] {
                let shape = LinearShape { m: 1, k, n: 100 };
                for capability in [VOLTA, ComputeCapability::HOPPER] {
                    let tile = GemvTile::new(matrix, shape, capability);
                    assert!((1..=8).contains(&tile.warps), "{matrix:?} {k} {tile:?}");
                    assert!(tile.rows.is_multiple_of(2) && k.is_multiple_of(tile.width), "{matrix:?} {k} {tile:?}");
                    assert!(
                        tile.tensor_cores
                            || !matches!(matrix, GemvMatrix::Packed(_))
                            || !matrix.is_faster(shape, capability)
                    );
                }
            }
        }
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_matrix() {
        let shapes = [(1, 4096, 512), (4, 129, 17), (2, 1000, 4096), (3, 28672, 64)];
        for (at, matrix) in matrices().enumerate() {
            for (m, k, n) in shapes.into_iter().skip(at % 2).step_by(2) {
                let shape = LinearShape { m, k, n };
                for capability in [VOLTA, ComputeCapability::HOPPER] {
                    let tile = GemvTile::new(matrix, shape, capability);
                    if matches!(matrix, GemvMatrix::Unquantized(_)) || tile.tensor_cores {
                        assert_compiles(CudaSource::Gemv, &tile.macros("gemv", matrix, (m, k), at % 2 == 0));
                    }
                }
            }
        }
    }
}
