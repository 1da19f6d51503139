//! Unquantized, dense weight and few rows, multiplied as matrix-vector products.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use crate::LayerSpec;
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError,
    gemv::{self, GemvMatrix},
    kernel::CudaKernel,
    layer_specs::require_gemm_only,
};

/// See [`gemv::prepare`].
pub(super) struct Gemv;

#[derive(Debug)]
struct GemvLayer(CudaKernel);

impl LayerKernel<Cuda> for Gemv {
    fn name(&self) -> &'static str {
        "GEMV"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        require_gemm_only(spec)?;
        let is_plain = spec.weight.is_none() && spec.input.is_none() && spec.sparsity.is_none();
        if is_plain
            && spec.precision_hint.is_none()
            && GemvMatrix::Unquantized(spec.dtype).is_faster(shape, *capability)
        {
            Ok(Cost::Fastest)
        } else {
            Err(Rejection::Spec("an unquantized, dense weight in full precision, and up to four rows"))
        }
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let kernel = gemv::prepare(device, GemvMatrix::Unquantized(spec.dtype), shape, spec.has_addend)?;
        LayerPlan::of_gemm(device, spec, shape, GemvLayer(kernel))
    }
}

impl LayerGemm for GemvLayer {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let LayerOperands { x, weight, addend, .. } = operands;
        self.0.enqueue_all([x, &weight.codes.memory].into_iter().chain(addend), [&mut y.memory])
    }

    fn algorithm(&self) -> String {
        self.0.algorithm()
    }
}
