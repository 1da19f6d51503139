//! Layers with a packed weight and an input that is not quantized, or fake-quantized first.

use std::sync::Arc;

use super::{LayerGemm, LayerOperands, LayerPlan, STORED};
use crate::layer::LinearShape;
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError, driver::DeviceMemory,
    input_fake_quantizer::InputFakeQuantizer, layer_specs::PackedSpec, packed_weight::weight_parts,
};
use crate::{LayerSpec, PackedTensor};

/// GEMM behind an optional fake quantization of the input.
#[derive(Debug)]
struct PackedLayer<G> {
    fake_quantizer: Option<InputFakeQuantizer>,
    gemm: G,
    has_block_scaled_mma: bool,
}

/// GEMM with a packed weight.
pub(super) trait PackedGemmPlan: std::fmt::Debug + Send {
    /// See [`LayerGemm::layout`].
    fn layout(&self) -> &'static str {
        STORED
    }

    /// See [`LayerGemm::prepack`].
    fn prepack(
        &self,
        _device: &CudaDevice,
        weight: PackedTensor<DeviceBuffer>,
    ) -> Result<PackedTensor<DeviceBuffer>, NativeError> {
        Ok(weight)
    }

    /// Enqueues a launch.
    fn enqueue(&mut self, operands: PackedOperands, y: &mut DeviceMemory) -> Result<(), NativeError>;

    /// Kernels and their configurations.
    fn algorithm(&self) -> String;
}

/// Operands of a launch.
pub(super) struct PackedOperands<'a> {
    pub(super) device: &'a CudaDevice,
    pub(super) x: &'a DeviceMemory,
    pub(super) weight: PackedTensor<&'a DeviceBuffer>,
    /// Tensor-wide scales of weight and input.
    pub(super) tensor_scales: [Option<&'a DeviceMemory>; 2],
    pub(super) addend: Option<&'a DeviceMemory>,
}

impl<'a> PackedOperands<'a> {
    /// Kernel inputs in order: x, the first parts of the weight, tensor-wide scales of weight and input, addend.
    pub(super) fn kernel_inputs(&self, part_count: usize) -> Vec<&'a DeviceMemory> {
        // The tensor-wide scale of the input is passed only together with that of the weight.
        let [weight_scale, _] = self.tensor_scales;
        let scales = self.tensor_scales.into_iter().flatten().filter(|_| weight_scale.is_some());
        [self.x]
            .into_iter()
            .chain(weight_parts(self.weight).take(part_count))
            .chain(scales)
            .chain(self.addend)
            .collect()
    }
}

/// Plans a layer around its GEMM.
pub(super) fn plan(
    device: &Arc<CudaDevice>,
    spec: &LayerSpec,
    packed: PackedSpec,
    shape: LinearShape,
    gemm: impl PackedGemmPlan + 'static,
) -> Result<LayerPlan, NativeError> {
    let fake_quantizer = InputFakeQuantizer::new(device, packed.kind, packed.input, (shape.m, shape.k))?;
    let has_block_scaled_mma = device.compute_capability() >= ComputeCapability::BLOCK_SCALED_MMA;
    LayerPlan::of_gemm(device, spec, shape, PackedLayer { fake_quantizer, gemm, has_block_scaled_mma })
}

impl<G: PackedGemmPlan> LayerGemm for PackedLayer<G> {
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
        let LayerOperands { device, x, weight, addend } = operands;
        let (x, input_scale) = match &mut self.fake_quantizer {
            Some(fake_quantizer) => {
                fake_quantizer.enqueue(&x.memory)?;
                (&fake_quantizer.values, Some(&fake_quantizer.tensor_scale))
            }
            None => (&x.memory, None),
        };
        let weight_scale = weight.outer_scales.map(|scale| &scale.memory);
        let (tensor_scales, addend) = ([weight_scale, input_scale], addend.map(|addend| &addend.memory));
        self.gemm.enqueue(PackedOperands { device, x, weight, tensor_scales, addend }, &mut y.memory)
    }

    fn algorithm(&self) -> String {
        let product = self.gemm.algorithm();
        match &self.fake_quantizer {
            None => product,
            Some(fake_quantizer) => {
                let why = if self.has_block_scaled_mma {
                    "native multiplication of this format is not used"
                } else {
                    "this GPU cannot multiply this format"
                };
                format!("as weight-only ({why}): {}; then {product}", fake_quantizer.algorithm)
            }
        }
    }
}
