//! int8 and e4m3 matmul by cuBLASLt, followed by an epilogue kernel.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::quantized_input::{padded_shape, parse, plan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError,
    cublaslt::{CublasLtMatmul, MatmulOperands},
    epilogue_kernel::EpilogueKernel,
    gemm_spec::{GemmSpec, OperandTypes},
    layer_specs::DynamicSpec,
};
use crate::{Dtype, LayerSpec};

/// cuBLASLt writes the accumulators, to which a separate kernel applies scales, activation and addend.
pub(super) struct CublasLtQuantized;

#[derive(Debug)]
struct AccumulatedMatmul {
    product: CublasLtMatmul,
    epilogue: EpilogueKernel,
}

impl LayerKernel<Cuda> for CublasLtQuantized {
    fn name(&self) -> &'static str {
        "int8 or e4m3, cuBLASLt"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        if parse(spec, shape, *capability)?.is_int4() {
            Err(Rejection::Spec("a weight of 8-bit values"))
        } else {
            Ok(Cost::LastResort)
        }
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let dynamic = DynamicSpec::parse(spec)?;
        let padded = padded_shape(dynamic, shape)?;
        let gemm = match dynamic.is_e4m3() {
            true => GemmSpec::plain(OperandTypes::E4m3(dynamic.accumulation), Dtype::F32),
            false => GemmSpec::int8(),
        };
        let epilogue = EpilogueKernel::new(device, dynamic, shape, (padded.m, padded.n))?;
        let product = CublasLtMatmul::plan(device, gemm, padded)?;
        plan(device, spec, dynamic, shape, AccumulatedMatmul { product, epilogue })
    }
}

impl LayerGemm for AccumulatedMatmul {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let LayerOperands { device, x, weight, addend, .. } = operands;
        let (w, sums) = (&weight.codes.memory, &self.epilogue.accumulators);
        self.product.enqueue(device, MatmulOperands { x, w, y: sums, scales: None, addend: None, bias: None })?;
        self.epilogue.enqueue(operands.scales()?, addend, &mut y.memory)
    }

    fn algorithm(&self) -> String {
        format!("{}; then {}", self.product.describe(), self.epilogue.algorithm)
    }
}
