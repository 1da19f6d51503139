//! e4m3 matmul by cuBLASLt, which applies the scales, and ReLU or the addend.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::quantized_input::{padded_shape, parse, plan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, CudaKernel, DeviceBuffer, Epilogue, NativeError,
    cublaslt::{CublasLtMatmul, MatmulOperands},
    gemm_spec::{GemmScales, GemmSpec, OperandTypes},
    layer_specs::DynamicSpec,
};
use crate::{Activation, LayerSpec};

/// cuBLASLt with fused scales. A separate kernel applies activations other than ReLU in place, because cuBLASLt's GELU
/// is the tanh approximation.
pub(super) struct CublasLtScaled;

#[derive(Debug)]
struct ScaledMatmul {
    product: CublasLtMatmul,
    fused: &'static str,
    activation: Option<CudaKernel>,
}

impl LayerKernel<Cuda> for CublasLtScaled {
    fn name(&self) -> &'static str {
        "e4m3, cuBLASLt with scales"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        let spec = parse(spec, shape, *capability)?;
        // cuBLASLt adds the addend before the activation.
        let activated_first = spec.has_addend && spec.activation.is_some();
        if spec.is_e4m3() && shape.n.is_multiple_of(16) && !activated_first {
            Ok(Cost::General)
        } else {
            Err(Rejection::Spec("e4m3, n that is a multiple of 16, and no addend after an activation"))
        }
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let dynamic = DynamicSpec::parse(spec)?;
        let gemm = ScaledMatmul::new(device, dynamic, shape).map_err(|error| match error {
            // Versions of cuBLASLt that do not know a combination of scales reject it.
            NativeError::CublasLt { doing, status } => {
                NativeError::NoAlgorithm { product: doing, shape, workspace_bytes: device.workspace().len(), status }
            }
            other => other,
        })?;
        plan(device, spec, dynamic, shape, gemm)
    }
}

impl ScaledMatmul {
    fn new(device: &Arc<CudaDevice>, spec: DynamicSpec, shape: LinearShape) -> Result<Self, NativeError> {
        let padded = padded_shape(spec, shape)?;
        let scales = if spec.is_per_tensor() { GemmScales::Tensors } else { GemmScales::RowsCols };
        let scaled = GemmSpec { scales, ..GemmSpec::plain(OperandTypes::E4m3(spec.accumulation), spec.kind) };
        if spec.activation == Some(Activation::Relu) {
            match CublasLtMatmul::plan(device, GemmSpec { epilogue: Epilogue::Relu, ..scaled }, padded) {
                Err(NativeError::NoAlgorithm { .. } | NativeError::CublasLt { .. }) => {}
                product => return Ok(Self { product: product?, fused: "scales and ReLU", activation: None }),
            }
        }
        let product = CublasLtMatmul::plan(device, scaled, padded)?;
        let elements = shape.m * shape.n;
        let activation = spec.activation.map(|function| CudaKernel::activation(device, spec.kind, function, elements));
        Ok(Self { product, fused: "scales", activation: activation.transpose()? })
    }
}

impl LayerGemm for ScaledMatmul {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let LayerOperands { device, x, weight, addend, .. } = operands;
        let (w, scales) = (&weight.codes.memory, Some(operands.scales()?));
        self.product.enqueue(device, MatmulOperands { x, w, y: &y.memory, scales, addend, bias: None })?;
        self.activation.as_ref().map_or(Ok(()), |activation| activation.enqueue_in_place(y))
    }

    fn algorithm(&self) -> String {
        let activation = self.activation.as_ref().map(|activation| format!("; then {}", activation.algorithm()));
        format!("{} with {}{}", self.product.describe(), self.fused, activation.unwrap_or_default())
    }
}
