//! float8 weight and float input: each weight is decoded when it is multiplied.

use crate::host::{Cpu, HostLayer, HostLayerContext, HostWeight};
use calorimeter_kernels::format::{Grouping, QuantMethod};
use calorimeter_kernels::layer::{Cost, LayerKernel, LinearShape, Rejection};
use calorimeter_kernels::rowwise::e4m3_to_f32;
use calorimeter_kernels::{Element, LayerSpec};

/// Weight-only float8 with one scale per row.
pub(super) struct Float8Weight;

const EXPECTED: Rejection = Rejection::Spec("an e4m3 weight with one scale per row, and a float input");

/// Weight: four values per word, the first in the lowest bits; rows begin at words.
struct Float8Layer {
    codes: Vec<u32>,
    scales: Vec<f32>,
}

// ANCHOR: kernel
impl LayerKernel<Cpu> for Float8Weight {
    fn name(&self) -> &'static str {
        "float8 weight"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, (): &()) -> Result<Cost, Rejection> {
        let float8_rows = spec.weight.is_some_and(|weight| {
            let has_row_scales = weight.grouping == Grouping::Row && !weight.sparse_2to4;
            weight.element == Element::E4m3 && has_row_scales && matches!(weight.method, QuantMethod::Floats { .. })
        });
        let weight_only = spec.input.is_none()
            && *spec == LayerSpec { weight: spec.weight, matmul: spec.matmul, ..LayerSpec::unquantized(spec.dtype) };
        if float8_rows && weight_only { Ok(Cost::General) } else { Err(EXPECTED) }
    }

    fn prepare(
        &self,
        context: &HostLayerContext,
        _: &LayerSpec,
        _: LinearShape,
    ) -> Result<Box<dyn HostLayer>, Rejection> {
        let HostWeight::Quantized { codes, scales, .. } = &context.weight else { return Err(EXPECTED) };
        Ok(Box::new(Float8Layer { codes: codes.clone(), scales: scales.clone() }))
    }
}
// ANCHOR_END: kernel

impl HostLayer for Float8Layer {
    fn run(&self, x: &[f32], k: usize, y: &mut [f32]) {
        let (rows, words) = (self.scales.len(), self.codes.len() / self.scales.len());
        for (x, y) in x.chunks(k).zip(y.chunks_mut(rows)) {
            for (row, y) in y.iter_mut().enumerate() {
                let codes = self.codes[row * words..][..words].iter().flat_map(|word| word.to_le_bytes());
                let products = x.iter().zip(codes).map(|(x, code)| x * e4m3_to_f32(code));
                *y = products.sum::<f32>() * self.scales[row];
            }
        }
    }

    fn weight_bytes(&self) -> usize {
        4 * (self.codes.len() + self.scales.len())
    }

    fn kernel(&self, _: usize) -> String {
        "float8 weight, decoded in each multiplication".into()
    }
}
