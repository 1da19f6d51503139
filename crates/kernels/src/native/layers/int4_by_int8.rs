//! int4 weight and int8 input: multiplied directly for few rows, and widened to int8 for many.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::quantized_input::{padded_shape, parse, plan};
use crate::LayerSpec;
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError, int4_gemm::Int4Gemm, layer_specs::DynamicSpec,
};

/// See [`Int4Gemm`]. Zero rows that pad the weight are not read.
pub(super) struct Int4ByInt8;

impl LayerKernel<Cuda> for Int4ByInt8 {
    fn name(&self) -> &'static str {
        "int4 by int8"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        if parse(spec, shape, *capability)?.is_int4() { Ok(Cost::Fastest) } else { Err(Rejection::Spec("int4")) }
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let dynamic = DynamicSpec::parse(spec)?;
        let gemm = Int4Gemm::new(device, dynamic, shape, padded_shape(dynamic, shape)?)?;
        plan(device, spec, dynamic, shape, gemm)
    }
}

impl LayerGemm for Int4Gemm {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let LayerOperands { device, x, weight, addend, .. } = operands;
        let row_scales = operands.input_scales.ok_or(NativeError::PlanMismatch)?;
        Self::enqueue(self, device, [x, row_scales], weight, addend, &mut y.memory)
    }

    fn algorithm(&self) -> String {
        self.algorithm()
    }
}
