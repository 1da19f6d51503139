//! uint4 weight with zero points, and float input.

use crate::format::{Grouping, QuantMethod, ZeroPoint};
use crate::host::layer::{Cpu, HostLayer, HostLayerContext, HostWeight, is_stored, require_dense_gemm};
use crate::host::{FloatGemm, FloatVec, HostGemmWeight, Int4Weight};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::{Dtype, Element, LayerSpec, MatmulMode};

/// See [`FloatGemm`].
pub(super) struct Int4WeightOnly;

const EXPECTED: Rejection =
    Rejection::Spec("a uint4 weight in groups of 32, 64, 128 or 256 with zero points after scaling, and a float input");

/// Returns group size, and element types of scales and zero points.
fn parse(spec: &LayerSpec) -> Option<(usize, [Element; 2])> {
    let weight = spec.weight.filter(|_| spec.input.is_none() && spec.matmul == MatmulMode::Values)?;
    match (weight.element, weight.method, weight.grouping, weight.zero) {
        (
            Element::Unsigned(4),
            QuantMethod::Tinygemm { .. } | QuantMethod::Hqq(_),
            Grouping::Block(group @ (32 | 64 | 128 | 256)),
            ZeroPoint::AfterScale(zero),
        ) if is_stored(weight.scale) && is_stored(zero) => Some((group as usize, [weight.scale, zero])),
        _ => None,
    }
}

impl LayerKernel<Cpu> for Int4WeightOnly {
    fn name(&self) -> &'static str {
        "int4 weight"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, (): &()) -> Result<Cost, Rejection> {
        require_dense_gemm(spec)?;
        parse(spec).map(|_| Cost::Fastest).ok_or(EXPECTED)
    }

    fn prepare(
        &self,
        context: &HostLayerContext,
        spec: &LayerSpec,
        shape: LinearShape,
    ) -> Result<Box<dyn HostLayer>, Rejection> {
        let (Some((group, [scale, zero])), HostWeight::Quantized { codes, scales, zeros }) =
            (parse(spec), &context.weight)
        else {
            return Err(EXPECTED);
        };
        // Scales and zero points of different dtypes are stored in f32, which represents both.
        let dtype = if scale == zero { scale } else { Element::Float(Dtype::F32) };
        let (codes, scales, zeros) = (codes.clone(), FloatVec::new(scales, dtype), FloatVec::new(zeros, dtype));
        let weight = HostGemmWeight::Int4(Int4Weight { codes, scales, zeros, group });
        Ok(Box::new(FloatGemm::new(weight, shape.n, shape.k)))
    }
}
