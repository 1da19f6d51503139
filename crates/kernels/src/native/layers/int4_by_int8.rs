//! int4 weight and int8 input: multiplied directly for few rows, and widened to int8 for many.

use std::sync::Arc;

use super::quantized_input::{QuantizedGemm, QuantizedOperands, padded_shape, parse, plan};
use super::{Cuda, LayerPlan};
use crate::LayerSpec;
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError, int4_gemm::Int4Gemm, layer_specs::DynamicSpec,
};

pub(super) const KERNEL: Int4ByInt8 = Int4ByInt8;

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

impl QuantizedGemm for Int4Gemm {
    fn enqueue(&mut self, operands: QuantizedOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let QuantizedOperands { device, x, weight, addend } = operands;
        Self::enqueue(self, device, x, weight, addend, &mut y.memory)
    }

    fn algorithm(&self) -> String {
        self.algorithm()
    }
}
