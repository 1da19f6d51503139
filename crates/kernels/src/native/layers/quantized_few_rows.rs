//! Few rows of a quantized input, multiplied as 16-bit floats by a weight that is dequantized in registers.

use std::sync::Arc;

use super::super::layer_plan::{Cuda, LayerGemm, LayerOperands, LayerPlan};
use super::quantized_input::{padded_n, parse};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::native::{
    ComputeCapability, CudaDevice, DeviceBuffer, NativeError,
    layer_specs::{DynamicSpec, PackedSpec},
    packed_gemm::PackedGemm,
    quantize_input::InputQuantizer,
};
use crate::{Dtype, LayerSpec};

/// Quantizes the input to values in its own dtype, which represents int8 and e4m3 exactly, and multiplies the values by
/// [`PackedGemm`] with f32 accumulators.
pub(super) struct QuantizedFewRows;

#[derive(Debug)]
struct FewRowsLayer {
    quantizer: InputQuantizer,
    gemm: PackedGemm,
}

/// Maximum rows of x: the rows of an mma fragment.
const MAX_ROWS: usize = 8;

/// True if this kernel is faster than cuBLASLt.
///
/// cuBLASLt does not split k of e4m3 matmuls with few rows. Times of layers with one row on an H200 in µs, including the
/// quantization of the input, which takes about 2 µs:
///
/// | k x n | int8, cuBLASLt | e4m3, cuBLASLt | int8, this kernel | e4m3, this kernel |
/// |---|---|---|---|---|
/// | 4096 x 6144 | 14.5 | 11.7 | 12.2 | |
/// | 7168 x 2112 | 12.8 | 21.2 | 11.6 | 11.7 |
/// | 3584 x 4608 | 13.0 | 10.1 | 12.4 | |
/// | 14336 x 4096 | 28.3 (H100) | 38.4 (H100) | 20.6 | 21.3 |
///
/// e4m3 needs a clear advantage, because it was measured at two shapes only.
fn is_faster(spec: DynamicSpec, LinearShape { m, k, n }: LinearShape) -> bool {
    // Fitted to the table: a block of cuBLASLt takes 2.6 ns per element of k.
    const MIN_ADVANTAGE: f64 = 1.2;
    let cublaslt_nanos = 2.6 * k as f64;
    let weight_nanos = 4500.0 + (n * k) as f64 / 3300.0;
    m <= MAX_ROWS && (!spec.is_e4m3() || cublaslt_nanos > MIN_ADVANTAGE * weight_nanos)
}

impl LayerKernel<Cuda> for QuantizedFewRows {
    fn name(&self) -> &'static str {
        "int8 or e4m3, few rows"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, capability: &ComputeCapability) -> Result<Cost, Rejection> {
        let dynamic = parse(spec, shape, *capability)?;
        let is_supported = !dynamic.is_int4()
            && !dynamic.is_per_tensor()
            && dynamic.activation.is_none()
            && dynamic.kind != Dtype::F32
            && is_faster(dynamic, shape);
        if is_supported {
            Ok(Cost::Fastest)
        } else {
            Err(Rejection::Spec("up to 8 rows of f16 or bf16, 8-bit values with scales per row, and no activation"))
        }
    }

    fn prepare(
        &self,
        device: &Arc<CudaDevice>,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<LayerPlan, NativeError> {
        let dynamic = DynamicSpec::parse(spec)?;
        let packed = PackedSpec { kind: dynamic.kind, weight: dynamic.weight, input: None, has_input_scales: true };
        let quantizer = InputQuantizer::storing_elements(device, dynamic, (shape.m, shape.k))?;
        let gemm = PackedGemm::new(device, packed, shape, spec.has_addend)?;
        LayerPlan::of_gemm(device, spec, shape, FewRowsLayer { quantizer, gemm })
    }
}

impl LayerGemm for FewRowsLayer {
    fn padded_n(&self, n: usize) -> usize {
        padded_n(n)
    }

    fn enqueue(&mut self, operands: LayerOperands, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.quantizer.enqueue(operands.x)?;
        let InputQuantizer { codes, scales, .. } = &self.quantizer;
        let LayerOperands { weight, addend, .. } = operands;
        let [input_scales, weight_scales] = LayerOperands { input_scales: Some(scales), ..operands }.scales()?;
        let inputs = [codes, &weight.codes.memory, weight_scales, input_scales];
        self.gemm.enqueue(inputs.into_iter().chain(addend), &mut y.memory)
    }

    fn algorithm(&self) -> String {
        format!("{}; then {}", self.quantizer.algorithm, self.gemm.algorithm)
    }
}
