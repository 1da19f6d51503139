//! Layers with a packed weight. The input is multiplied directly, or after a fake quantization.

use std::sync::Arc;

use super::super::layer_plan::{LayerGemm, LayerOperands, LayerPlan};
use crate::layer::LinearShape;
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError, driver::DeviceMemory,
    input_fake_quantizer::InputFakeQuantizer, layer_specs::PackedSpec, packed_weight::weight_parts,
};
use crate::{LayerSpec, PackedTensor};

/// Fake quantization of the input, followed by a GEMM.
#[derive(Debug)]
struct FakeQuantizedLayer<G> {
    fake_quantizer: InputFakeQuantizer,
    gemm: G,
    has_block_scaled_mma: bool,
}

impl<'a> LayerOperands<'a> {
    /// Inputs of a kernel for packed weights, in order: x, the first parts of the weight, tensor-wide scales of weight
    /// and input, addend.
    pub(super) fn kernel_inputs(self, part_count: usize) -> impl Iterator<Item = &'a DeviceMemory> {
        let weight_scale = self.weight.outer_scales.map(|scale| &scale.memory);
        // The tensor-wide scale of the input is passed only if the weight has a tensor-wide scale.
        let scales = weight_scale.into_iter().chain(self.input_scales.filter(|_| weight_scale.is_some()));
        let parts = weight_parts(self.weight).take(part_count);
        [self.x].into_iter().chain(parts).chain(scales).chain(self.addend)
    }
}

/// Plans a layer around its GEMM.
pub(super) fn plan(
    device: &Arc<CudaDevice>,
    spec: &LayerSpec,
    packed: PackedSpec,
    shape: LinearShape,
    gemm: impl LayerGemm + 'static,
) -> Result<LayerPlan, NativeError> {
    match InputFakeQuantizer::new(device, packed.kind, packed.input, (shape.m, shape.k))? {
        None => LayerPlan::of_gemm(device, spec, shape, gemm),
        Some(fake_quantizer) => {
            let has_block_scaled_mma = device.compute_capability() >= ComputeCapability::BLOCK_SCALED_MMA;
            let layer = FakeQuantizedLayer { fake_quantizer, gemm, has_block_scaled_mma };
            LayerPlan::of_gemm(device, spec, shape, layer)
        }
    }
}

impl<G: LayerGemm> LayerGemm for FakeQuantizedLayer<G> {
    fn layout(&self) -> &'static str {
        self.gemm.layout()
    }

    fn prepack(
        &self,
        device: &CudaDevice,
        weight: PackedTensor<DeviceBuffer>,
    ) -> Result<PackedTensor<DeviceBuffer>, NativeError> {
        self.gemm.prepack(device, weight)
    }

    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.fake_quantizer.enqueue(operands.x)?;
        let InputFakeQuantizer { values, tensor_scale, .. } = &self.fake_quantizer;
        self.gemm.enqueue(LayerOperands { x: values, input_scales: Some(tensor_scale), ..operands }, y)
    }

    fn algorithm(&self) -> String {
        let why = if self.has_block_scaled_mma {
            "native multiplication of this format is not used"
        } else {
            "this GPU cannot multiply this format"
        };
        format!("as weight-only ({why}): {}; then {}", self.fake_quantizer.algorithm, self.gemm.algorithm())
    }
}
