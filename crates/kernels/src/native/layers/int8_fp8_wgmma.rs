//! int8 and e4m3 GEMM with `wgmma` and a fused epilogue.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::quantized_input::{parse, plan};
use crate::LayerSpec;
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError, int8_fp8_gemm::Int8Fp8Gemm, layer_specs::DynamicSpec,
};

/// See [`Int8Fp8Gemm`].
pub(super) struct Int8Fp8Wgmma;

impl LayerKernel<Cuda> for Int8Fp8Wgmma {
    fn name(&self) -> &'static str {
        "int8 or e4m3, wgmma with fused epilogue"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        let spec = parse(spec, shape, *capability)?;
        if Int8Fp8Gemm::is_faster(spec, shape, *capability) {
            Ok(Cost::Fastest)
        } else {
            Err(Rejection::Spec("many tiles of int8, or of e4m3 with fast accumulation, and a GPU with wgmma"))
        }
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let dynamic = DynamicSpec::parse(spec)?;
        let gemm = Int8Fp8Gemm::new(device, dynamic, shape, LayerPlan::padded_k(shape.k))?;
        plan(device, spec, dynamic, shape, gemm)
    }
}

impl LayerGemm for Int8Fp8Gemm {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let codes = [operands.x, &operands.weight.codes.memory];
        Self::enqueue(self, codes, operands.scales()?, operands.addend, &mut y.memory)
    }

    fn algorithm(&self) -> String {
        self.algorithm.clone()
    }
}
