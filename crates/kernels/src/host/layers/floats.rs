//! Unquantized weight.

use crate::LayerSpec;
use crate::host::layer::{Cpu, HostLayer, HostLayerContext, HostWeight, require_dense_gemm};
use crate::host::{FloatGemm, HostGemmWeight};
use crate::layer::{Cost, LayerKernel, LinearShape, Rejection};

/// See [`FloatGemm`].
pub(super) struct Floats;

const EXPECTED: Rejection = Rejection::Spec("an unquantized weight");

impl LayerKernel<Cpu> for Floats {
    fn name(&self) -> &'static str {
        "float weight"
    }

    fn accepts(&self, spec: &LayerSpec, _: LinearShape, (): &()) -> Result<Cost, Rejection> {
        require_dense_gemm(spec)?;
        if spec.weight.is_none() && spec.input.is_none() { Ok(Cost::Fastest) } else { Err(EXPECTED) }
    }

    fn prepare(
        &self,
        context: &HostLayerContext,
        _: &LayerSpec,
        shape: LinearShape,
    ) -> Result<Box<dyn HostLayer>, Rejection> {
        let HostWeight::Floats(values) = &context.weight else { return Err(EXPECTED) };
        Ok(Box::new(FloatGemm::new(HostGemmWeight::Floats(values.clone()), shape.n, shape.k)))
    }
}

impl HostLayer for FloatGemm {
    fn run(&self, x: &[f32], _: usize, y: &mut [f32]) {
        Self::run(self, x, y);
    }

    fn weight_bytes(&self) -> usize {
        self.weight_bytes()
    }

    fn kernel(&self, m: usize) -> String {
        self.kernel(m)
    }
}
