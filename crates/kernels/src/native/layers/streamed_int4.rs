//! Large int4 weight that is streamed through shared memory.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::fake_quantized_input::plan;
use crate::LayerSpec;
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError,
    layer_specs::PackedSpec,
    streamed_gemm::{StreamedGemm, StreamedGemmTile},
};

/// See [`StreamedGemm`].
pub(super) struct StreamedInt4;

const EXPECTED: Rejection = Rejection::Spec("a large int4 weight in groups of 128 and few rows");

impl LayerKernel<Cuda> for StreamedInt4 {
    fn name(&self) -> &'static str {
        "streamed int4 weight"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        let tile = StreamedGemmTile::new(PackedSpec::parse(spec)?, shape, *capability);
        tile.map(|_| Cost::Fastest).ok_or(EXPECTED)
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let packed = PackedSpec::parse(spec)?;
        let tile = StreamedGemmTile::new(packed, shape, device.compute_capability()).ok_or(EXPECTED)?;
        plan(device, spec, packed, shape, StreamedGemm::new(device, packed, shape, tile, spec.has_addend)?)
    }
}

impl LayerGemm for StreamedGemm {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        Self::enqueue(self, operands.kernel_inputs(usize::MAX), &mut y.memory)
    }

    fn algorithm(&self) -> String {
        self.algorithm.clone()
    }
}
