//! Symmetric int8 or int4 weight in blocks of 32 with f16 scales, and float input.

use crate::format::{Grouping, ZeroPoint};
use crate::host::layer::{Cpu, HostLayer, HostLayerContext, HostWeight, require_dense_gemm};
use crate::host::{BlockWeight, FloatGemm, HostGemmWeight};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};
use crate::{Dtype, Element, LayerSpec, MatmulMode};
use half::f16;

/// See [`FloatGemm`].
pub(super) struct BlockWeightOnly;

const EXPECTED: Rejection =
    Rejection::Spec("a symmetric int8 or int4 weight in blocks of 32 with f16 scales, and a float input");

/// Offset of the stored 4-bit values: turns eight two's complement values into values plus 8.
const INT4_OFFSETS: u32 = 0x8888_8888;

/// Returns the bits of a value.
fn parse(spec: &LayerSpec) -> Option<u8> {
    let weight = spec.weight.filter(|_| spec.input.is_none() && spec.matmul == MatmulMode::Values)?;
    let is_block = weight.grouping == Grouping::Block(BlockWeight::SIZE as u32) && weight.zero == ZeroPoint::None;
    let has_one_level = weight.outer_scale_count(1) == 0 && !weight.sparse_2to4;
    match (weight.element, weight.scale) {
        (Element::Signed(bits @ (4 | 8)), Element::Float(Dtype::F16)) if is_block && has_one_level => Some(bits),
        _ => None,
    }
}

impl LayerKernel<Cpu> for BlockWeightOnly {
    fn name(&self) -> &'static str {
        "int8 or int4 blocks"
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
        let (Some(bits), HostWeight::Quantized { codes, scales, .. }) = (parse(spec), &context.weight) else {
            return Err(EXPECTED);
        };
        let scales = scales.iter().map(|&scale| f16::from_f32(scale)).collect();
        let weight = if bits == 8 {
            HostGemmWeight::Int8Blocks(BlockWeight { codes: codes.clone(), scales })
        } else {
            let codes = codes.iter().map(|word| word ^ INT4_OFFSETS).collect();
            HostGemmWeight::Int4Blocks(BlockWeight { codes, scales })
        };
        Ok(Box::new(FloatGemm::new(weight, shape.n, shape.k)))
    }
}
