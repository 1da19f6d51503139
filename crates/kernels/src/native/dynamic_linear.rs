//! Linear layers with dynamic quantization of the input.

use std::sync::Arc;

use super::{
    CudaDevice, CudaKernel, DeviceBuffer, Epilogue, LinearShape, NativeError, PackedWeight,
    cublaslt::{CublasLtMatmul, MatmulOperands},
    driver::DeviceMemory,
    epilogue_kernel::EpilogueKernel,
    gemm_spec::{GemmScales, GemmSpec, OperandTypes},
    gpu::ComputeCapability,
    int4_gemm::Int4Gemm,
    int8_fp8_gemm::Int8Fp8Gemm,
    quantize_input::InputQuantizer,
    sizes::{check_shape, check_size},
};
use crate::{Activation as Function, Dtype, DynamicFormat, DynamicLinearSpec, Prologue, ScaleGranularity};

/// Plan of y[m, n] = f(p(x[m, k]) · w[n, k]ᵀ) + addend[m, n] with quantized p(x) and w. A first kernel applies the
/// prologue and quantizes x; then a GEMM follows whose epilogue applies scales, activation and addend.
///
/// Quantized weight rows are padded with zeros to [`DynamicLinearPlan::padded_k`] values, and to
/// [`DynamicLinearPlan::padded_n`] rows, because tensor cores multiply in multiples of 16. Integer accumulators are exact.
///
/// - On Hopper, with enough tiles, a native GEMM with fused epilogue is used for int8, and for e4m3 with fast accumulation
///   if cuBLASLt cannot fuse the epilogue.
/// - Otherwise cuBLASLt multiplies. int8 accumulators are written out and processed by a separate epilogue kernel. For e4m3,
///   cuBLASLt applies the scales if it can and n is a multiple of 16, as well as ReLU or the addend. Other activations are
///   applied in place, because cuBLASLt's GELU is the tanh approximation.
/// - e4m3 accumulators are promoted unless the specification asks for fast accumulation, whose error exceeds that of f16 for
///   long rows.
/// - int4 weights are multiplied directly for up to 64 rows and widened to int8 for more. Zero rows that pad such a weight
///   are not read.
#[derive(Debug)]
pub struct DynamicLinearPlan {
    quantize: InputQuantizer,
    gemm: DynamicGemmKernel,
    device: Arc<CudaDevice>,
    shape: LinearShape,
    kind: Dtype,
    prologue: Prologue,
    added: bool,
}

/// Implementation of the GEMM.
#[derive(Debug)]
enum DynamicGemmKernel {
    /// cuBLASLt with the weight as stored.
    CublasLt(Box<CublasLtMatmul>, ScaleStage),
    /// Native kernel with fused epilogue.
    Fused(Int8Fp8Gemm),
    /// int4 weight.
    Int4(Int4Gemm),
}

/// Place where scales, activation and addend are applied.
#[derive(Debug)]
enum ScaleStage {
    /// In cuBLASLt, followed by an activation that it cannot fuse.
    InCublasLt(&'static str, Option<Box<CudaKernel>>),
    /// In a separate kernel.
    Separate(Box<EpilogueKernel>),
}

/// Minimum rows of an int8 matmul: cuBLASLt does not support 16 or fewer. Smaller inputs are padded.
const MIN_INT8_ROWS: usize = 32;

impl DynamicLinearPlan {
    /// Selects the implementation and compiles.
    pub fn new(device: &Arc<CudaDevice>, spec: DynamicLinearSpec, shape: LinearShape) -> Result<Self, NativeError> {
        let requirement = match spec.format {
            DynamicFormat::E4m3 => ("an e4m3 matmul", ComputeCapability::E4M3),
            _ => ("an int8 matmul", ComputeCapability::AMPERE),
        };
        device.require(requirement.0, requirement.1)?;
        let shape = check_shape(shape)?;
        let filled = padded_shape(spec.format, shape)?;
        let quantize = InputQuantizer::new(device, spec, (shape.m, shape.k), (filled.m, filled.k))?;
        let gemm = if spec.format.is_int4() {
            DynamicGemmKernel::Int4(Int4Gemm::new(device, spec, shape, filled)?)
        } else if Int8Fp8Gemm::is_faster(spec, shape, device.compute_capability()) {
            DynamicGemmKernel::Fused(Int8Fp8Gemm::new(device, spec, shape, filled.k)?)
        } else if let Some((product, after)) = plan_scaled_matmul(device, spec, shape, filled)? {
            DynamicGemmKernel::CublasLt(Box::new(product), after)
        } else {
            let plain = match spec.format {
                DynamicFormat::E4m3 => GemmSpec::plain(OperandTypes::E4m3(spec.accumulation), Dtype::F32),
                _ => GemmSpec::int8(),
            };
            let finish = EpilogueKernel::new(device, spec, shape, (filled.m, filled.n))?;
            DynamicGemmKernel::CublasLt(
                Box::new(CublasLtMatmul::plan(device, plain, filled)?),
                ScaleStage::Separate(Box::new(finish)),
            )
        };
        let DynamicLinearSpec { kind, prologue, has_addend: added, .. } = spec;
        Ok(Self { quantize, gemm, device: device.clone(), shape, kind, prologue, added })
    }

    /// Padded row length of the quantized weight.
    pub const fn padded_k(k: usize) -> usize {
        k.next_multiple_of(32)
    }

    /// Padded number of rows of the quantized weight. Scales are not padded.
    pub const fn padded_n(n: usize) -> usize {
        n.next_multiple_of(16)
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        let row_parts = if let Prologue::ShortAttention { .. } = self.prologue { 3 } else { 1 };
        row_parts * self.shape.x_bytes(self.kind)
    }

    /// Bytes of the output.
    pub fn y_bytes(&self) -> usize {
        self.shape.y_bytes(self.kind)
    }

    /// Enqueues a launch; `added` is required if and only if the specification has an addend.
    pub fn enqueue(
        &mut self,
        x: &DeviceBuffer,
        w: &PackedWeight,
        added: Option<&DeviceBuffer>,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        self.quantize(x)?;
        self.multiply(w, added, y)
    }

    /// Enqueues the first part: quantizes the input. The result is kept until the next call.
    pub fn quantize(&mut self, x: &DeviceBuffer) -> Result<(), NativeError> {
        self.quantize.enqueue(&x.memory)
    }

    /// Enqueues the second part: the GEMM with the quantized input, and its epilogue.
    pub fn multiply(
        &mut self,
        w: &PackedWeight,
        added: Option<&DeviceBuffer>,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        NativeError::check_input_count(2 + usize::from(self.added), 2 + usize::from(added.is_some()))?;
        if let DynamicGemmKernel::Int4(product) = &mut self.gemm {
            let InputQuantizer { codes, scales, .. } = &self.quantize;
            let added = added.map(|added| &added.memory);
            return product.enqueue(&self.device, [codes, scales], w, added, &mut y.memory);
        }
        self.multiply_quantized([&w.codes.memory, &w.scales.memory], added, y)
    }

    /// Enqueues the second part with separate buffers for the quantized weight and its scales; not for int4 weights.
    pub(super) fn multiply_quantized(
        &mut self,
        [w, column_scales]: [&DeviceMemory; 2],
        added: Option<&DeviceBuffer>,
        y: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        let added = added.map(|added| &added.memory);
        let InputQuantizer { codes, scales, .. } = &self.quantize;
        let operands = MatmulOperands { x: codes, w, y: &y.memory, scales: None, addend: None, bias: None };
        match &self.gemm {
            DynamicGemmKernel::CublasLt(product, ScaleStage::InCublasLt(_, activation)) => {
                let operands = MatmulOperands { scales: Some([scales, column_scales]), addend: added, ..operands };
                product.enqueue(&self.device, operands)?;
                activation.as_ref().map_or(Ok(()), |activation| activation.enqueue_in_place(y))
            }
            DynamicGemmKernel::CublasLt(product, ScaleStage::Separate(finish)) => {
                product.enqueue(&self.device, MatmulOperands { y: &finish.accumulators, ..operands })?;
                finish.enqueue([scales, column_scales], added, &mut y.memory)
            }
            DynamicGemmKernel::Fused(product) => {
                product.enqueue([codes, w], [scales, column_scales], added, &mut y.memory)
            }
            DynamicGemmKernel::Int4(_) => Err(NativeError::PlanMismatch),
        }
    }

    /// Kernels, their configurations, and the algorithm of cuBLASLt.
    pub fn algorithm(&self) -> String {
        let product = match &self.gemm {
            DynamicGemmKernel::CublasLt(product, after) => {
                let after = match after {
                    ScaleStage::InCublasLt(what, None) => format!(" with {what}"),
                    ScaleStage::InCublasLt(what, Some(activation)) => {
                        format!(" with {what}; then {}", activation.algorithm())
                    }
                    ScaleStage::Separate(finish) => format!("; then {}", finish.algorithm),
                };
                format!("{}{after}", product.describe())
            }
            DynamicGemmKernel::Fused(product) => product.algorithm.clone(),
            DynamicGemmKernel::Int4(product) => product.algorithm(),
        };
        format!("{}; then {product}", self.quantize.algorithm)
    }
}

/// Returns the sizes padded for tensor cores.
fn padded_shape(codes: DynamicFormat, LinearShape { m, k, n }: LinearShape) -> Result<LinearShape, NativeError> {
    let m = match codes.max_exact_k() {
        Some(limit) if k > limit => {
            return Err(NativeError::InvalidSize { what: "k of an int8 matmul", limit, value: k });
        }
        Some(_) => m.max(MIN_INT8_ROWS),
        None => m,
    };
    let (k, n) = (DynamicLinearPlan::padded_k(k), DynamicLinearPlan::padded_n(n));
    Ok(LinearShape { m, k: check_size("k", k)?, n: check_size("n", n)? })
}

/// Plans a cuBLASLt matmul with fused scales; `None` if unsupported.
fn plan_scaled_matmul(
    device: &Arc<CudaDevice>,
    spec: DynamicLinearSpec,
    shape: LinearShape,
    filled: LinearShape,
) -> Result<Option<(CublasLtMatmul, ScaleStage)>, NativeError> {
    // cuBLASLt adds the addend before the activation.
    let activated_first = spec.has_addend && spec.activation.is_some();
    if spec.format != DynamicFormat::E4m3 || (shape.m, shape.n) != (filled.m, filled.n) || activated_first {
        return Ok(None);
    }
    let scales = match spec.granularity {
        ScaleGranularity::Row => GemmScales::RowsCols,
        ScaleGranularity::Tensor => GemmScales::Tensors,
    };
    let scaled = GemmSpec { scales, ..GemmSpec::plain(OperandTypes::E4m3(spec.accumulation), spec.kind) };
    if spec.activation == Some(Function::Relu) {
        let activated = GemmSpec { epilogue: Epilogue::Relu, ..scaled };
        if let Some(product) = if_supported(CublasLtMatmul::plan(device, activated, filled))? {
            return Ok(Some((product, ScaleStage::InCublasLt("scales and ReLU", None))));
        }
    }
    let Some(product) = if_supported(CublasLtMatmul::plan(device, scaled, filled))? else { return Ok(None) };
    let LinearShape { m, n, .. } = shape;
    let activation =
        spec.activation.map(|function| CudaKernel::activation(device, spec.kind, function, m * n)).transpose()?;
    Ok(Some((product, ScaleStage::InCublasLt("scales", activation.map(Box::new)))))
}

/// Maps a missing algorithm to `None`.
fn if_supported(product: Result<CublasLtMatmul, NativeError>) -> Result<Option<CublasLtMatmul>, NativeError> {
    match product {
        Ok(product) => Ok(Some(product)),
        Err(NativeError::NoAlgorithm { .. } | NativeError::CublasLt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_padded_and_int8_k_is_bounded() {
        let size = |codes, m, k, n| padded_shape(codes, LinearShape { m, k, n }).map(|it| (it.m, it.k, it.n));
        assert_eq!(size(DynamicFormat::Int8, 1, 129, 3), Ok((32, 160, 16)));
        assert_eq!(size(DynamicFormat::Int8, 127, 1000, 1000), Ok((127, 1024, 1008)));
        assert_eq!(size(DynamicFormat::E4m3, 3, 1, 17), Ok((3, 32, 32)));
        let longest = DynamicFormat::MAX_INT8_K;
        assert!(longest as i64 * 127 * 128 <= i64::from(i32::MAX) && size(DynamicFormat::Int8, 1, longest, 1).is_ok());
        let result = size(DynamicFormat::Int8, 1, longest + 1, 1);
        assert!(matches!(result, Err(NativeError::InvalidSize { limit: 132_104, value: 132_105, .. })), "{result:?}");
    }
}
