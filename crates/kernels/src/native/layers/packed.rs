//! Packed weight that is dequantized in registers, for few rows.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::fake_quantized_input::plan;
use crate::LayerSpec;
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError, layer_specs::PackedSpec, packed_gemm::PackedGemm,
};

/// See [`PackedGemm`].
pub(super) struct Packed;

/// Maximum rows of x for which a weight stays packed, for formats without the tiled kernel.
///
/// Times in µs on an H200 for k = n = 4096 in bf16:
///
/// | rows | 8-bit packed | 4-bit packed | dequantize and cuBLASLt |
/// |---|---|---|---|
/// | 16 | 9.6 | 10.3 | |
/// | 32 | 12.4 | 16.2 | |
/// | 64 | 21.7 | 29.6 | |
/// | 65 to 128 | | | 25, for any format |
fn max_fastest_rows(bits: u32) -> usize {
    match bits {
        8 => 64,
        _ => 48,
    }
}

impl LayerKernel<Cuda> for Packed {
    fn name(&self) -> &'static str {
        "packed weight"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, _: &ComputeCapability) -> Result<Cost, Rejection> {
        let spec = PackedSpec::parse(spec)?;
        Ok(if shape.m <= max_fastest_rows(spec.weight.bits()) { Cost::Fastest } else { Cost::LastResort })
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let packed = PackedSpec::parse(spec)?;
        plan(device, spec, packed, shape, PackedGemm::new(device, packed, shape, spec.has_addend)?)
    }
}

impl LayerGemm for PackedGemm {
    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        Self::enqueue(self, operands.kernel_inputs(usize::MAX), &mut y.memory)
    }

    fn algorithm(&self) -> String {
        self.algorithm.clone()
    }
}
