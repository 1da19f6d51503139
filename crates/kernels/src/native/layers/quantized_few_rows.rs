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

/// Quantizes the input to int8 or e4m3 values, and stores the values exactly in the dtype of the input. [`PackedGemm`]
/// multiplies the values with f32 accumulators.
pub(super) struct QuantizedFewRows;

#[derive(Debug)]
struct FewRowsLayer {
    quantizer: InputQuantizer,
    gemm: PackedGemm,
}

/// Maximum rows of x: the rows of an mma fragment.
const MAX_ROWS: usize = 8;

/// True if this kernel is faster than cuBLASLt, which does not split k of e4m3 matmuls with few rows. The estimated
/// times are in ns, and were fitted to times on an H200 (docs/design/gemm_kernels.md).
fn is_faster(spec: DynamicSpec, LinearShape { m, k, n }: LinearShape) -> bool {
    let of_weight = |start: f64, values_per_nano: f64| start + (n * k) as f64 / values_per_nano;
    let cublaslt = (2.6 * k as f64).max(of_weight(4500.0, 4100.0));
    match m {
        _ if !spec.is_e4m3() => m <= MAX_ROWS,
        1 => of_weight(3500.0, 3700.0) < cublaslt,
        // A clear advantage is required, because several rows were measured at two shapes only.
        2..=MAX_ROWS => 1.2 * of_weight(4500.0, 3300.0) < cublaslt,
        _ => false,
    }
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
