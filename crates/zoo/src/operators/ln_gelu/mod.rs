//! Layer normalisation, then GELU with the error function.

use super::layer_norm::{self, LayerNorm};
use super::rows::{AXES, count, floats, stored};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_or_cube};
use crate::{Activation, Device, FusionModel, Implementation, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, backend::Backend};
use calorimeter_recipes::FloatType;

/// `ln_gelu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LnGelu;

impl Operation for LnGelu {
    const ABOUT: &'static str = "layer normalisation with gain and bias, then GELU";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self]
    }

    fn name(&self) -> &'static str {
        "ln_gelu"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        LayerNorm.inputs(spec)
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        LayerNorm.outputs(spec)
    }

    // A layer normalisation; scale, erf, add, multiply and halve: five for each number.
    fn flops(&self, spec: &Spec) -> u64 {
        LayerNorm.flops(spec) + 5 * count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        LayerNorm.intermediate(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        Some(FusionModel {
            operators: vec!["layer_norm".into(), "gelu".into()],
            unfused_bytes: LayerNorm.bytes(spec) + 2 * stored(spec),
            fused_bytes: self.bytes(spec),
        })
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        8
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        sample.by_rows(|row| {
            let normal = layer_norm::exact(&inputs[0].exact_row(row), &inputs[1], &inputs[2]);
            sample.cols.iter().map(|&col| Activation::Gelu.exact(normal[col])).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        layer_norm::tolerance(spec)
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        burn_or_cube(self.name(), implementation, device)
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain, bias] = floats(inputs);
        Box::new(move || {
            let normal = layer_norm::apply(x.clone().cast(DType::F32), &gain, &bias);
            vec![Value::Float(Activation::Gelu.apply(normal).cast(dtype))]
        })
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, crate::ZooError> {
        use calorimeter_kernels::cube;
        super::cubed::pass(inputs, |client, size, [x, gain, bias], [out]| {
            let (epsilon, activation) = (crate::normalise::EPSILON as f32, Some(cube::Activation::Gelu));
            let norm = cube::LayerNorm { x, residual: None, gain, bias, epsilon, activation, out };
            cube::layer_norm(client, size, norm)
        })
    }
}
