//! Linear layers with packed weights.

use std::sync::Arc;

use super::{
    ComputeCapability, CudaDevice, DeviceBuffer, LinearShape, NativeError, PackedWeight,
    cublaslt::{CublasLtMatmul, MatmulOperands},
    dequantize_weight::DequantizeKernel,
    driver::DeviceMemory,
    epilogue_kernel::EpilogueKernel,
    gemm_spec::{GemmSpec, OperandTypes},
    input_fake_quantizer::InputFakeQuantizer,
    packed_gemm::PackedGemm,
    sizes::check_shape,
    streamed_gemm::{StreamedGemm, StreamedGemmTile},
    tiled_gemm::TiledGemm,
};
use crate::{
    Dtype, DynamicFormat, DynamicLinearSpec, Float8Accumulation, PackedLinearSpec, PackedWeightFormat, Prologue,
    ScaleGranularity,
};

/// Plan of y[m, n] = x[m, k] · w[n, k]ᵀ for a packed weight, with f32 accumulators.
///
/// For microscaling formats a first kernel fake-quantizes x; the bf16 operands represent the values exactly.
/// Tensor-core instructions for these formats are not used.
///
/// For few rows, the weight stays packed and is dequantized in registers. Large int4 weights are streamed through
/// shared memory where that is faster. On Hopper, some formats are prepacked once for a wgmma kernel. For more rows,
/// the weight is dequantized into a buffer in the dtype of x and multiplied by cuBLASLt; if cuBLASLt has no algorithm,
/// the weight stays packed.
#[derive(Debug)]
pub struct PackedLinearPlan {
    device: Arc<CudaDevice>,
    round: Option<InputFakeQuantizer>,
    gemm: PackedGemmKernel,
    shape: LinearShape,
    kind: Dtype,
    added: bool,
}

#[derive(Debug)]
enum PackedGemmKernel {
    Direct(Box<PackedGemm>),
    Streamed(Box<StreamedGemm>),
    Tiled(Box<TiledGemm>),
    Dequantized(Box<DequantizedGemm>),
}

/// Weight in the memory layout of a plan.
#[derive(Debug)]
pub struct PrepackedWeight {
    weight: PackedWeight,
    tiled: bool,
}

impl PrepackedWeight {
    /// Bytes of all parts.
    pub fn bytes(&self) -> usize {
        self.weight.bytes()
    }
}

/// Dequantization kernel followed by a cuBLASLt matmul.
#[derive(Debug)]
struct DequantizedGemm {
    unpack: DequantizeKernel,
    weight: DeviceMemory,
    product: CublasLtMatmul,
    /// Separate epilogue, if cuBLASLt does not write y itself.
    epilogue: Option<EpilogueStage>,
}

/// Tensor-wide scaling and rounding of f32 accumulators.
#[derive(Debug)]
struct EpilogueStage {
    kernel: EpilogueKernel,
    /// Scale of 1 for a weight without a tensor-wide scale.
    one: DeviceMemory,
}

/// Rows of x for which the tiled kernel is the fastest, for formats that support it.
///
/// Times in µs on an H200 for k = n = 4096 in bf16, as below:
///
/// | rows | tiled | other |
/// |---|---|---|
/// | 8 | 10.3 | 8-bit packed 8.3, 4-bit packed 7.6 |
/// | 12 | 10.3 | 8-bit packed 10.8, 4-bit packed 12.1 |
/// | 32, 64, 128, 256 | 11.5, 12.7, 17.5, 21.9 | |
/// | 512, 1024 | 29, 56 | |
/// | 2048 | 111 | dequantize and cuBLASLt 101 (61 for 1025 rows) |
const TILED_ROWS: std::ops::RangeInclusive<usize> = 9..=1024;

/// Maximum rows of x for which a weight stays packed, for formats without the tiled kernel.
///
/// Times in µs on an H200 for k = n = 4096 in bf16:
///
/// | rows | 8-bit packed | 4-bit packed | dequantize and cuBLASLt |
/// |---|---|---|---|
/// | 16 | 9.6 | 10.3 | |
/// | 32 | 12.4 | 16.2 | |
/// | 64 | 21.7 | 29.6 | |
/// | 65 to 128 | | | 25, for any format |
fn max_packed_rows(codes: PackedWeightFormat) -> usize {
    match codes.element.bits() {
        8 => 64,
        _ => 48,
    }
}

impl PackedLinearPlan {
    /// Selects the implementation and compiles.
    pub fn new(device: &Arc<CudaDevice>, spec: PackedLinearSpec, shape: LinearShape) -> Result<Self, NativeError> {
        Self::plan(device, spec, shape, false)
    }

    /// Selects and compiles a plan that adds a matrix of the shape of y before rounding.
    pub fn with_addend(
        device: &Arc<CudaDevice>,
        spec: PackedLinearSpec,
        shape: LinearShape,
    ) -> Result<Self, NativeError> {
        Self::plan(device, spec, shape, true)
    }

    fn plan(
        device: &Arc<CudaDevice>,
        spec: PackedLinearSpec,
        shape: LinearShape,
        added: bool,
    ) -> Result<Self, NativeError> {
        let (spec, shape) = (spec.validate()?, check_shape(shape)?);
        let capability = device.compute_capability();
        let supports_tiled = TiledGemm::is_supported(spec, shape, capability);
        let gemm = if let Some(tile) = StreamedGemmTile::new(spec, shape, capability) {
            PackedGemmKernel::Streamed(Box::new(StreamedGemm::new(device, spec, shape, tile, added)?))
        } else if supports_tiled && TILED_ROWS.contains(&shape.m) {
            PackedGemmKernel::Tiled(Box::new(TiledGemm::new(device, spec, shape, added)?))
        } else {
            let unpack_first = shape.m > max_packed_rows(spec.weight);
            let unpacked = if unpack_first { DequantizedGemm::new(device, spec, shape, added)? } else { None };
            match unpacked {
                Some(unpacked) => PackedGemmKernel::Dequantized(Box::new(unpacked)),
                None => PackedGemmKernel::Direct(Box::new(PackedGemm::new(device, spec, shape, added)?)),
            }
        };
        let round = InputFakeQuantizer::new(device, spec.kind, spec.input, (shape.m, shape.k))?;
        Ok(Self { device: device.clone(), round, gemm, shape, kind: spec.kind, added })
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.shape.x_bytes(self.kind)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.kind)
    }

    /// Converts a weight to the layout of this plan. Done once per weight, not part of a launch.
    pub fn prepack(&self, weight: PackedWeight) -> Result<PrepackedWeight, NativeError> {
        Ok(match &self.gemm {
            PackedGemmKernel::Tiled(product) => {
                PrepackedWeight { weight: product.reorder(&self.device, weight)?, tiled: true }
            }
            PackedGemmKernel::Direct(_) | PackedGemmKernel::Streamed(_) | PackedGemmKernel::Dequantized(_) => {
                PrepackedWeight { weight, tiled: false }
            }
        })
    }

    /// Enqueues a launch; `added` is required if and only if the plan has an addend.
    pub fn enqueue(
        &mut self,
        x: &DeviceBuffer,
        w: &PrepackedWeight,
        added: Option<&DeviceBuffer>,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        NativeError::check_input_count(2 + usize::from(self.added), 2 + usize::from(added.is_some()))?;
        if w.tiled != matches!(self.gemm, PackedGemmKernel::Tiled(_)) {
            return Err(NativeError::PlanMismatch);
        }
        let added = added.map(|added| &added.memory);
        let (x, input_scale) = match &mut self.round {
            Some(round) => {
                round.enqueue(&x.memory)?;
                (&round.values, Some(&round.tensor_scale))
            }
            None => (&x.memory, None),
        };
        let PackedWeight { tensor_scale: outer, .. } = &w.weight;
        let outer = outer.as_ref().map(|outer| &outer.memory);
        let parts = w.weight.parts();
        match &mut self.gemm {
            PackedGemmKernel::Direct(product) => {
                product.enqueue(&inputs(x, parts, [outer, input_scale], added), &mut y.memory)
            }
            PackedGemmKernel::Streamed(product) => {
                product.enqueue(&inputs(x, parts, [outer, input_scale], added), &mut y.memory)
            }
            PackedGemmKernel::Tiled(product) => {
                // Group scales and zero points are interleaved with the values and not passed separately.
                let parts = parts.take(product.part_count());
                product.enqueue(&inputs(x, parts, [outer, input_scale], added), &mut y.memory)
            }
            PackedGemmKernel::Dequantized(unpacked) => {
                unpacked.enqueue(&self.device, x, &w.weight, [outer, input_scale], added, y)
            }
        }
    }

    /// Kernels, their configurations, and the algorithm of cuBLASLt.
    pub fn algorithm(&self) -> String {
        let product = match &self.gemm {
            PackedGemmKernel::Direct(product) => product.algorithm.clone(),
            PackedGemmKernel::Streamed(product) => product.algorithm.clone(),
            PackedGemmKernel::Tiled(product) => product.algorithm.clone(),
            PackedGemmKernel::Dequantized(unpacked) => unpacked.algorithm(),
        };
        match &self.round {
            None => product,
            Some(round) => {
                let why = if self.device.compute_capability() < ComputeCapability::BLOCK_SCALED_MMA {
                    "this GPU cannot multiply this format"
                } else {
                    "native multiplication of this format is not used"
                };
                format!("as weight-only ({why}): {}; then {product}", round.algorithm)
            }
        }
    }
}

/// Kernel inputs in order: x, weight parts, tensor-wide scales of weight and input, addend.
fn inputs<'a>(
    x: &'a DeviceMemory,
    parts: impl Iterator<Item = &'a DeviceMemory>,
    outer: [Option<&'a DeviceMemory>; 2],
    added: Option<&'a DeviceMemory>,
) -> Vec<&'a DeviceMemory> {
    // The tensor-wide scale of the input is passed only together with that of the weight.
    let outer = outer.into_iter().flatten().filter(|_| outer[0].is_some());
    [x].into_iter().chain(parts).chain(outer).chain(added).collect()
}

impl DequantizedGemm {
    /// Selects and compiles; `None` if cuBLASLt has no algorithm, e.g. because rows are not multiples of 16 bytes.
    fn new(
        device: &Arc<CudaDevice>,
        spec: PackedLinearSpec,
        shape: LinearShape,
        added: bool,
    ) -> Result<Option<Self>, NativeError> {
        let factors = spec.operand_dtype();
        // cuBLASLt can write y itself only in the operand dtype and without tensor-wide scales.
        let fused_output = spec.kind == factors && !spec.has_tensor_scale();
        let output = if fused_output { spec.kind } else { Dtype::F32 };
        let product = match CublasLtMatmul::plan(device, GemmSpec::plain(OperandTypes::Float(factors), output), shape) {
            Ok(product) => product,
            Err(NativeError::NoAlgorithm { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let finish = (!fused_output).then(|| EpilogueStage::new(device, spec.kind, shape, added)).transpose()?;
        let unpack = DequantizeKernel::new(device, spec, shape)?;
        let weight = DeviceMemory::allocate(device.stream(), shape.w_bytes(factors))?;
        Ok(Some(Self { unpack, weight, product, epilogue: finish }))
    }

    fn enqueue(
        &mut self,
        device: &CudaDevice,
        x: &DeviceMemory,
        w: &PackedWeight,
        outer: [Option<&DeviceMemory>; 2],
        added: Option<&DeviceMemory>,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        let parts: Vec<&DeviceMemory> = w.parts().collect();
        self.unpack.kernel.enqueue_all(&parts, &mut [&mut self.weight])?;
        let operands = MatmulOperands { x, w: &self.weight, y: &y.memory, scales: None, addend: added, bias: None };
        let Some(EpilogueStage { kernel, one }) = &self.epilogue else { return self.product.enqueue(device, operands) };
        self.product.enqueue(device, MatmulOperands { y: &kernel.accumulators, addend: None, ..operands })?;
        let [weight_scale, input_scale] = outer.map(|scale| scale.unwrap_or(one));
        kernel.enqueue([input_scale, weight_scale], added, &mut y.memory)
    }

    fn algorithm(&self) -> String {
        let finish = self.epilogue.as_ref().map(|finish| format!("; then {}", finish.kernel.algorithm));
        format!("{}; then {}{}", self.unpack.algorithm, self.product.describe(), finish.unwrap_or_default())
    }
}

impl EpilogueStage {
    fn new(device: &Arc<CudaDevice>, kind: Dtype, shape: LinearShape, added: bool) -> Result<Self, NativeError> {
        let spec = DynamicLinearSpec {
            kind,
            format: DynamicFormat::E4m3,
            granularity: ScaleGranularity::Tensor,
            accumulation: Float8Accumulation::Promoted,
            prologue: Prologue::None,
            activation: None,
            has_addend: added,
        };
        let mut one = DeviceMemory::allocate(device.stream(), 4)?;
        one.upload(&1.0f32.to_le_bytes())?;
        Ok(Self { kernel: EpilogueKernel::new(device, spec, shape, (shape.m, shape.n))?, one })
    }
}
