//! int8 weight, and input that is quantized to int8.

use super::int8_weight::{has_int8_weight, is_int8_rows};
use crate::host::layer::{Cpu, HostLayer, HostLayerContext, HostWeight, QuantizedRows, require_dense_gemm};
use crate::host::{FloatVec, Int8Gemm};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::{Format, LayerSpec};

/// See [`Int8Gemm`].
pub(super) struct Int8Dynamic;

const EXPECTED: Rejection = Rejection::Spec("int8 weight and input with one scale per row");

/// Quantization of the input, followed by an int8 GEMM.
struct QuantizedLayer {
    gemm: Int8Gemm,
    input: Format,
    quantize: fn(&[f32], usize, Format) -> QuantizedRows,
}

impl LayerKernel<Cpu> for Int8Dynamic {
    fn name(&self) -> &'static str {
        "int8 by int8"
    }

    fn accepts(&self, spec: &LayerSpec, shape: LinearShape, (): &()) -> Result<Cost, Rejection> {
        require_dense_gemm(spec)?;
        if !(has_int8_weight(spec) && spec.input.is_some_and(is_int8_rows)) {
            return Err(EXPECTED);
        }
        if shape.k > Int8Gemm::MAX_K {
            return Err(Rejection::Size { what: "k (accumulated in 32 bits)", max: Int8Gemm::MAX_K, value: shape.k });
        }
        Ok(Cost::Fastest)
    }

    fn prepare(
        &self,
        context: &HostLayerContext,
        spec: &LayerSpec,
        _: LinearShape,
    ) -> Result<Box<dyn HostLayer>, Rejection> {
        let (Some(weight), Some(input), HostWeight::Quantized { codes, scales, .. }) =
            (spec.weight, spec.input, &context.weight)
        else {
            return Err(EXPECTED);
        };
        let gemm = Int8Gemm::new(codes, FloatVec::new(scales, weight.scale));
        Ok(Box::new(QuantizedLayer { gemm, input, quantize: context.quantize }))
    }
}

impl HostLayer for QuantizedLayer {
    fn run(&self, x: &[f32], k: usize, y: &mut [f32]) {
        let QuantizedRows { codes, scales } = (self.quantize)(x, k, self.input);
        self.gemm.run(&codes, &scales, y);
    }

    fn weight_bytes(&self) -> usize {
        self.gemm.weight_bytes()
    }

    fn kernel(&self, m: usize) -> String {
        format!("rows quantized; then {}", self.gemm.kernel(m))
    }
}
