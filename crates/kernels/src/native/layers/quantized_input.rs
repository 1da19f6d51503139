//! Layers whose input is quantized at run time. A first kernel applies the prologue and quantizes x. A GEMM follows,
//! and the epilogue of the GEMM applies scales, activation and addend.
//!
//! Quantized weight rows are padded with zeros to [`LayerPlan::padded_k`] values and to a multiple of 16 rows, because
//! tensor cores multiply in multiples of 16. Integer accumulators are exact. e4m3 accumulators are promoted unless the
//! specification allows fast accumulation, whose error exceeds that of f16 for long rows.

use std::sync::Arc;

use super::super::layer_plan::{LayerGemm, LayerOperands, LayerPlan, require};
use crate::LayerSpec;
use crate::layer::{LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError, driver::DeviceMemory, layer_specs::DynamicSpec,
    quantize_input::InputQuantizer, sizes::check_size,
};

/// Quantization of the input, followed by a GEMM.
#[derive(Debug)]
struct QuantizedLayer<G> {
    quantizer: InputQuantizer,
    gemm: G,
}

impl<'a> LayerOperands<'a> {
    /// Scales of a quantized input and scales of the weight, per row or per tensor.
    pub(super) fn scales(&self) -> Result<[&'a DeviceMemory; 2], NativeError> {
        let weight_scales = self.weight.outer_scales.or(self.weight.scales).map(|scales| &scales.memory);
        let (Some(input), Some(weight)) = (self.input_scales, weight_scales) else {
            return Err(NativeError::PlanMismatch);
        };
        Ok([input, weight])
    }
}

/// Minimum rows of an int8 matmul: cuBLASLt does not support 16 or fewer. Smaller inputs are padded.
const MIN_INT8_ROWS: usize = 32;

/// Parses the specification of a layer; rejects a layer that the GPU cannot multiply accurately.
pub(super) fn parse(spec: &LayerSpec, shape: LinearShape, found: ComputeCapability) -> Result<DynamicSpec, Rejection> {
    let dynamic = DynamicSpec::parse(spec)?;
    if dynamic.is_e4m3() {
        require(found, ComputeCapability::E4M3, "e4m3 matrix instructions")?;
    } else {
        require(found, ComputeCapability::AMPERE, "int8 matrix instructions")?;
    }
    dynamic.check_accumulators(shape.k)?;
    Ok(dynamic)
}

/// Returns the sizes padded for tensor cores.
pub(super) fn padded_shape(
    spec: DynamicSpec,
    LinearShape { m, k, n }: LinearShape,
) -> Result<LinearShape, NativeError> {
    let m = if spec.is_e4m3() { m } else { m.max(MIN_INT8_ROWS) };
    Ok(LinearShape { m, k: check_size("k", LayerPlan::padded_k(k))?, n: check_size("n", padded_n(n))? })
}

/// Number of rows of a weight after padding.
pub(super) const fn padded_n(n: usize) -> usize {
    n.next_multiple_of(16)
}

/// Plans a layer around its GEMM.
pub(super) fn plan(
    device: &Arc<CudaDevice>,
    spec: &LayerSpec,
    dynamic: DynamicSpec,
    shape: LinearShape,
    gemm: impl LayerGemm + 'static,
) -> Result<LayerPlan, NativeError> {
    let padded = padded_shape(dynamic, shape)?;
    let quantizer = InputQuantizer::new(device, dynamic, (shape.m, shape.k), (padded.m, padded.k))?;
    LayerPlan::of_gemm(device, spec, shape, QuantizedLayer { quantizer, gemm })
}

impl<G: LayerGemm> LayerGemm for QuantizedLayer<G> {
    fn padded_n(&self, n: usize) -> usize {
        padded_n(n)
    }

    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.quantizer.enqueue(operands.x)?;
        let InputQuantizer { codes, scales, .. } = &self.quantizer;
        self.gemm.enqueue(LayerOperands { x: codes, input_scales: Some(scales), ..operands }, y)
    }

    fn algorithm(&self) -> String {
        format!("{}; then {}", self.quantizer.algorithm, self.gemm.algorithm())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::layer_specs::tests::dynamic_specs;

    #[test]
    fn shapes_are_padded_for_tensor_cores() {
        for spec in dynamic_specs() {
            let size = |m, k, n| padded_shape(spec, LinearShape { m, k, n }).map(|it| (it.m, it.k, it.n));
            let m = |rows: usize| if spec.is_e4m3() { rows } else { rows.max(32) };
            assert_eq!(size(1, 129, 3), Ok((m(1), 160, 16)));
            assert_eq!(size(127, 1000, 1000), Ok((127, 1024, 1008)));
        }
    }
}
