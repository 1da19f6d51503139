//! Packed weight that is prepacked into tiles and dequantized for `wgmma`.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::fake_quantized_input::plan;
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError, layer_specs::PackedSpec, tiled_gemm::TiledGemm,
};
use crate::{LayerSpec, PackedTensor};

/// See [`TiledGemm`].
pub(super) struct TiledWgmma;

/// Rows of x for which this kernel is the fastest, for supported formats. The kernel was measured for up to 2048 rows
/// (docs/design/gemm_kernels.md). With more rows, the separate dequantization of the whole weight takes a small share
/// of the time.
const FASTEST_ROWS: std::ops::RangeInclusive<usize> = 9..=2048;

impl LayerKernel<Cuda> for TiledWgmma {
    fn name(&self) -> &'static str {
        "tiled weight, wgmma"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        if !TiledGemm::is_supported(PackedSpec::parse(spec)?, shape, *capability) {
            return Err(Rejection::Spec("rows of 16 bytes, 16 values that share a scale, and a GPU with wgmma"));
        }
        if FASTEST_ROWS.contains(&shape.m) { Ok(Cost::Fastest) } else { Err(Rejection::Spec("9 to 2048 rows")) }
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let packed = PackedSpec::parse(spec)?;
        plan(device, spec, packed, shape, TiledGemm::new(device, packed, shape, spec.has_addend)?)
    }
}

impl LayerGemm for TiledGemm {
    fn layout(&self) -> &'static str {
        self.layout
    }

    fn prepack(
        &self,
        device: &CudaDevice,
        weight: PackedTensor<DeviceBuffer>,
    ) -> Result<PackedTensor<DeviceBuffer>, NativeError> {
        self.reorder(device, weight)
    }

    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        // Group scales and zero points are interleaved with the values and not passed separately.
        Self::enqueue(self, operands.kernel_inputs(self.part_count()), &mut y.memory)
    }

    fn algorithm(&self) -> String {
        self.algorithm.clone()
    }
}
