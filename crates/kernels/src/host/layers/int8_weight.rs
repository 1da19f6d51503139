//! int8 weight and float input.

use crate::format::{Grouping, QuantMethod, ZeroPoint};
use crate::host::layer::{Cpu, HostLayer, HostLayerContext, HostWeight, is_stored, require_dense_gemm};
use crate::host::{FloatGemm, FloatVec, HostGemmWeight, Int8Weight};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::{Element, Format, LayerSpec, MatmulMode};

/// See [`FloatGemm`].
pub(super) struct Int8WeightOnly;

const EXPECTED: Rejection = Rejection::Spec("an int8 weight with one f32 or bf16 scale per row, and a float input");

/// True for symmetric int8 with one scale per row.
pub(super) fn is_int8_rows(format: Format) -> bool {
    format.element == Element::Signed(8)
        && format.grouping == Grouping::Row
        && matches!(format.method, QuantMethod::Symmetric { .. })
        && format.zero == ZeroPoint::None
        && !format.sparse_2to4
}

/// True if the weight is int8 with stored row scales that are applied to the sums.
pub(super) fn has_int8_weight(spec: &LayerSpec) -> bool {
    let fits = |weight: Format| is_int8_rows(weight) && is_stored(weight.scale);
    spec.weight.is_some_and(fits) && matches!(spec.matmul, MatmulMode::QuantizedValues(_))
}

impl LayerKernel<Cpu> for Int8WeightOnly {
    fn name(&self) -> &'static str {
        "int8 weight"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, (): &()) -> Result<Cost, Rejection> {
        require_dense_gemm(spec)?;
        if has_int8_weight(spec) && spec.input.is_none() { Ok(Cost::Fastest) } else { Err(EXPECTED) }
    }

    fn prepare(
        &self,
        context: &HostLayerContext,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<Box<dyn HostLayer>, Rejection> {
        let (Some(format), HostWeight::Quantized { codes, scales, .. }) = (spec.weight, &context.weight) else {
            return Err(EXPECTED);
        };
        let weight = Int8Weight { codes: codes.clone(), scales: FloatVec::new(scales, format.scale) };
        Ok(Box::new(FloatGemm::new(HostGemmWeight::Int8(weight), shape.n, shape.k)))
    }
}
