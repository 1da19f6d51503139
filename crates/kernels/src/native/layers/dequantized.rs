//! Packed weight that is dequantized into a buffer, and multiplied by cuBLASLt.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::fake_quantized_input::plan;
use crate::format::Grouping;
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError,
    cublaslt::{CublasLtMatmul, MatmulOperands},
    dequantize_weight::DequantizeKernel,
    driver::DeviceMemory,
    epilogue_kernel::EpilogueKernel,
    gemm_spec::{GemmSpec, OperandTypes},
    layer_specs::{DynamicSpec, PackedSpec},
    packed_weight::weight_parts,
};
use crate::{Dtype, Element, Float8Accumulation, Format, LayerSpec, Prologue};

/// Dequantization kernel and cuBLASLt: the fastest for many rows of any format.
pub(super) struct Dequantized;

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

impl LayerKernel<Cuda> for Dequantized {
    fn name(&self) -> &'static str {
        "dequantized weight, cuBLASLt"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, _: &ComputeCapability) -> Result<Cost, Rejection> {
        PackedSpec::parse(spec).map(|_| Cost::General)
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let packed = PackedSpec::parse(spec)?;
        plan(device, spec, packed, shape, DequantizedGemm::new(device, packed, shape, spec.has_addend)?)
    }
}

impl DequantizedGemm {
    fn new(
        device: &Arc<CudaDevice>,
        spec: PackedSpec,
        shape: LinearShape,
        has_addend: bool,
    ) -> Result<Self, NativeError> {
        let factors = spec.operand_dtype();
        // cuBLASLt can write y itself only in the operand dtype and without tensor-wide scales.
        let fused_output = spec.kind == factors && !spec.has_tensor_scale();
        let output = if fused_output { spec.kind } else { Dtype::F32 };
        let product = CublasLtMatmul::plan(device, GemmSpec::plain(OperandTypes::Float(factors), output), shape)?;
        let epilogue = (!fused_output).then(|| EpilogueStage::new(device, spec.kind, shape, has_addend)).transpose()?;
        let unpack = DequantizeKernel::new(device, spec, shape)?;
        let weight = DeviceMemory::allocate(device.stream(), shape.w_bytes(factors))?;
        Ok(Self { unpack, weight, product, epilogue })
    }
}

impl LayerGemm for DequantizedGemm {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let LayerOperands { device, x, input_scales, weight, addend } = operands;
        self.unpack.kernel.enqueue_all(weight_parts(weight), [&mut self.weight])?;
        let matmul = MatmulOperands { x, w: &self.weight, y: &y.memory, scales: None, addend, bias: None };
        let Some(EpilogueStage { kernel, one }) = &self.epilogue else { return self.product.enqueue(device, matmul) };
        self.product.enqueue(device, MatmulOperands { y: &kernel.accumulators, addend: None, ..matmul })?;
        let weight_scale = weight.outer_scales.map_or(one, |scale| &scale.memory);
        kernel.enqueue([input_scales.unwrap_or(one), weight_scale], addend, &mut y.memory)
    }

    fn algorithm(&self) -> String {
        let epilogue = self.epilogue.as_ref().map(|epilogue| format!("; then {}", epilogue.kernel.algorithm));
        format!("{}; then {}{}", self.unpack.algorithm, self.product.describe(), epilogue.unwrap_or_default())
    }
}

impl EpilogueStage {
    fn new(device: &Arc<CudaDevice>, kind: Dtype, shape: LinearShape, has_addend: bool) -> Result<Self, NativeError> {
        let float8 = Format::float8(Element::E4m3, Grouping::Tensor, kind);
        let spec = DynamicSpec {
            kind,
            weight: float8,
            input: float8,
            accumulation: Float8Accumulation::Promoted,
            prologue: Prologue::None,
            activation: None,
            has_addend,
        };
        let mut one = DeviceMemory::allocate(device.stream(), 4)?;
        one.upload(&1.0f32.to_le_bytes())?;
        Ok(Self { kernel: EpilogueKernel::new(device, spec, shape, (shape.m, shape.n))?, one })
    }
}
