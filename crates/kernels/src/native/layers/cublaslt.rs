//! Unquantized, dense weight, multiplied by cuBLASLt.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, LinearPlan, NativeError, layer_specs::require_gemm_only,
};
use crate::{Dtype, LayerSpec, PrecisionHint};

/// See [`LinearPlan`].
pub(super) struct CublasLt;

impl LayerKernel<Cuda> for CublasLt {
    fn name(&self) -> &'static str {
        "cuBLASLt"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, _: &ComputeCapability) -> Result<Cost, Rejection> {
        require_gemm_only(spec)?;
        if spec.weight.is_none() && spec.input.is_none() && spec.sparsity.is_none() {
            Ok(Cost::Fastest)
        } else {
            Err(Rejection::Spec("an unquantized, dense weight"))
        }
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let linear = match (spec.dtype, spec.precision_hint) {
            (Dtype::F32, Some(PrecisionHint::Tf32)) => LinearPlan::with_tf32(device, shape)?,
            (dtype, _) => LinearPlan::new(device, dtype, shape)?,
        };
        LayerPlan::of_gemm(device, spec, shape, linear)
    }
}

impl LayerGemm for LinearPlan {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let LayerOperands { x, weight, addend, .. } = operands;
        self.run([x, &weight.codes.memory], None, addend, y)
    }

    fn algorithm(&self) -> String {
        self.algorithm()
    }
}
