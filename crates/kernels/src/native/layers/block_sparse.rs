//! Block-sparse float weight.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError,
    block_linear::{BlockLinearPlan, BlockLinearSpec},
    layer_specs::require_gemm_only,
};
use crate::{LayerSpec, Sparsity};

/// See [`BlockLinearPlan`].
pub(super) struct BlockSparse;

/// Returns the specification of the blocks of a layer.
fn parse(spec: &LayerSpec, k: usize) -> Result<BlockLinearSpec, Rejection> {
    require_gemm_only(spec)?;
    let (Some(blocks @ Sparsity::Block { block_size, .. }), None, None, None) =
        (spec.sparsity, spec.weight, spec.input, spec.precision_hint)
    else {
        return Err(Rejection::Spec("an unquantized, block-sparse weight"));
    };
    let blocks_per_row = blocks.retained_blocks_per_row(k).unwrap_or_default();
    Ok(BlockLinearSpec { kind: spec.dtype, side: block_size.into(), blocks_per_row, has_addend: spec.has_addend })
}

impl LayerKernel<Cuda> for BlockSparse {
    fn name(&self) -> &'static str {
        "block-sparse weight"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, _: &ComputeCapability) -> Result<Cost, Rejection> {
        parse(spec, shape.k).map(|_| Cost::Fastest)
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        LayerPlan::of_gemm(device, spec, shape, BlockLinearPlan::new(device, parse(spec, shape.k)?, shape)?)
    }
}

impl LayerGemm for BlockLinearPlan {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let LayerOperands { x, weight, addend, .. } = operands;
        let column_indices = weight.positions.ok_or(NativeError::PlanMismatch)?;
        Self::enqueue(self, x, [&weight.codes.memory, &column_indices.memory], addend, &mut y.memory)
    }

    fn algorithm(&self) -> String {
        self.algorithm()
    }

    fn skips_zeros(&self) -> bool {
        true
    }
}
